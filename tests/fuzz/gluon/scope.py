"""The generator of Gluon kernels: statements of the Triton language, whose tiles are brought into layouts as written.

Statements come as text, `v7 = v3 + v5`. Where its tiles are in different layouts, all but those of one layout are
converted in their place: `v7 = v3 + gl.convert_layout(v5, L2)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ..elements import Array
from ..program import INDENT, Program, State
from ..scope import Generator, Impossible, Shape, Var
from . import layouts

TILE = re.compile(r"\b[vp]\d+\b")
RANGE = re.compile(r"tl\.arange\((\d+), (\d+)\)(\[[^\]]*\])?")
FULL = re.compile(r"tl\.full\((\[[^\]]*\]), ([^,]+), (tl\.\w+)\)")
ASSIGNED = re.compile(r"^([vpk]\d+) = ")
REDUCED = re.compile(r"tl\.(?:sum|max|min|xor_sum|reduce)\(.*?, (\d+|None)(?:\)|, )")
PAIR = re.compile(r"^(v\d+), (v\d+) = (tl\.reduce|tl\.associative_scan)\(\(")
NUMBERED = re.compile(r"tl\.broadcast_to\(tl\.reshape\((tl\.arange\(0, \d+\)), (\[.*?\])\), (\[.*?\])\)")
SCANS = {"tl.cumsum": "plus", "tl.cumprod": "multiply"}

HELPERS = """import weft
from weft import gluon
from weft.gluon import language as gl
from weft.gluon.language.nvidia import ampere, hopper
from weft.gluon.language.nvidia.ampere import async_copy, mma_v2
from weft.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from weft.language import PropagateNan


@gluon.jit
def plus(a, b):
    return a + b


@gluon.jit
def multiply(a, b):
    return a * b


@gluon.jit
def greater(a, b):
    return gl.maximum(a, b)


@gluon.jit
def lesser_if(a, b):
    if a < b:
        r = a
    else:
        r = b
    return r


@gluon.jit
def both(a, b):
    return a & b


@gluon.jit
def first_greatest(v0, i0, v1, i1):
    take = (v0 > v1) | ((v0 == v1) & (i0 < i1))
    return gl.where(take, v0, v1), gl.where(take, i0, i1)


@gluon.jit
def affine(a0, b0, a1, b1):
    return a0 * a1, b0 * a1 + b1
"""


@dataclass
class GluonProgram(Program):
    """A kernel in Gluon."""

    warps: int = 4
    layouts: dict[str, str] = field(default_factory=dict)

    helpers: ClassVar[str] = HELPERS
    decorator: ClassVar[str] = "@gluon.jit"

    def statements(self) -> str:
        """The layouts by name, and the statements."""
        body = Program.statements(self).replace("tl.PropagateNan", "PropagateNan").replace("tl.", "gl.")
        used = set(re.findall(r"\bL\d+\b", body))
        used |= {n for name in used for n in re.findall(r"\bL\d+\b", self.layouts[name])}
        named = [f"{INDENT}{name}: gl.constexpr = {text}\n" for name, text in self.layouts.items() if name in used]
        return "".join(named) + body

    def parameters(self) -> str:
        """The parameters of the kernel."""
        return Program.parameters(self).replace("tl.", "gl.")

    def options(self) -> dict[str, Any]:
        """The layouts are for so many warps."""
        return {"num_warps": self.warps}


class GluonGenerator(Generator):
    """Appends statements to a Gluon kernel for a compute capability."""

    registers = staticmethod(layouts.distributed)
    """What draws a layout of registers."""

    def __init__(self, seed: int, capability: int, menu: list[tuple[Any, int]]) -> None:
        super().__init__(seed, apart=True)
        rng = self.rng
        self.hopper = capability >= 90
        self.menu = menu
        self.warps = rng.choice((1, 2, 4, 4, 4, 8))
        self.dims = [rng.choice((1, 2, 4, 8, 16, 16, 32, 32, 64)) for _ in range(3)]
        self.max_numel = rng.choice((64, 256, 1024, 2048))
        self.program: GluonProgram = GluonProgram(
            seed, [], {}, {}, self.program.body, rng.choice((1, 1, 1, 2)), [], self.warps
        )  # fmt: skip
        self.laid: dict[str, str] = {}  # the layout of each tile
        self.made_for: dict[str, int] = {}  # how many elements each layout was drawn for
        self.shapes: dict[str, Shape] = {}
        self.memories: list[list[Memory]] = [[]]

    # -- layouts ------------------------------------------------------------------------------------------------------

    def named(self, layout: str) -> str:
        """A name for a layout, the same for the same."""
        known: dict[str, str] = self.program.layouts
        for name, text in known.items():
            if text == layout:
                return name
        name = f"L{len(known)}"
        known[name] = layout
        return name

    def layout(self, shape: Shape) -> str:
        """A layout for a tile: one that there is for this rank, or a new one.

        A layout of a few elements is none for a large tile: each thread would hold all of it.
        """
        size = math.prod(shape)
        same = [self.laid[v.name] for v in self.visible() if v.name in self.laid and len(v.shape) == len(shape)]
        same = [layout for layout in same if size <= 64 * self.made_for.get(layout, size)]
        if same and self.rng.random() < 0.4:
            return self.rng.choice(same)
        layout = self.named(self.registers(self.rng, shape, self.warps, self.hopper))
        self.made_for.setdefault(layout, size)
        return layout

    def converted_text(self, var: Var, layout: str) -> str:
        """The variable in a layout, as text."""
        return var.name if self.laid[var.name] == layout else f"gl.convert_layout({var.name}, {layout})"

    def plainly(self, var: Var) -> str:
        """The variable, as text, in a layout whose bases are no sums: only such a tile can take any other shape."""
        text = re.sub(r"\bL\d+\b", lambda m: self.program.layouts[m[0]], self.laid[var.name])
        if all(n & (n - 1) == 0 for n in map(int, re.findall(r"\b\d+\b", text))):
            return var.name
        return f"gl.convert_layout({var.name}, {self.named(layouts.blocked(self.rng, len(var.shape), self.warps))})"

    # -- writing ------------------------------------------------------------------------------------------------------

    def met(self, text: str, shape: Shape | None) -> tuple[str, str]:
        """The text with all tiles in one layout, and that layout ("" where there are no tiles)."""
        assigned = ASSIGNED.match(text)
        target = assigned.group(1) if assigned else ""
        names = list(dict.fromkeys(n for n in TILE.findall(text[len(target) :]) if n in self.laid))
        ranks = {len(self.shapes[n]) for n in names}
        made = RANGE.search(text) or FULL.search(text)
        if len(ranks) > 1:
            raise Impossible("no broadcasting between ranks")
        if not names and not made:
            return text, ""
        shape = self.shapes[names[0]] if names else shape
        assert shape is not None
        if target in self.laid:  # assigned anew
            layout = self.laid[target]
        elif names:
            layout = self.laid[self._leader(text, names)]
        else:
            layout = self.layout(shape)
        rank = len(shape)
        text = TILE.sub(lambda m: self._fitted(m, target, layout), text)
        text = RANGE.sub(lambda m: _ranged(m, layout, rank), text)
        return FULL.sub(lambda m: f"tl.full({m[1]}, {m[2]}, {m[3]}, {layout})", text), layout

    def _leader(self, text: str, names: list[str]) -> str:
        """Whose layout the others get: pointers keep theirs, and what is stored follows."""
        pointers = [n for n in names if n.startswith("p")]
        return (pointers or [self.rng.choice(names)])[0]

    def _fitted(self, match: re.Match[str], target: str, layout: str) -> str:
        name = match.group()
        if name not in self.laid or self.laid[name] == layout or (name == target and match.start() == 0):
            return name
        return f"gl.convert_layout({name}, {layout})"

    def line(self, text: str, run: Callable[[State], None]) -> None:
        pair = PAIR.match(text)
        text, layout = self.met(text, None)
        source = next((self.shapes[n] for n in TILE.findall(text) if n in self.laid), ())
        assigned = ASSIGNED.match(text)
        if pair and "keep_dims" in text and len(source) == 1:
            raise Impossible("not in Gluon")
        if pair:
            after = _after(text, layout)
            for name in pair.group(1, 2):
                self.laid[name] = after
                self.shapes[name] = source  # put right by `two`
        elif assigned and layout:
            self.shapes.setdefault(assigned.group(1), source)
            self.laid[assigned.group(1)] = layout
        self.put(text, run)

    def define(
        self, text: str, value: Callable[[State], Array], shape: Shape, elem: str, lo: int, hi: int, name: str = ""
    ) -> Var:
        """`name = text`, a new variable, in the layout of what it is made of."""
        if "tl.arg" in text or ("keep_dims" in text and shape == (1,)):
            raise Impossible("not in Gluon")
        text = NUMBERED.sub(_numbered, text)
        for scan, function in SCANS.items():
            if text.startswith(scan):
                text = re.sub(r"^\S+\((\w+, \d+)", rf"tl.associative_scan(\1, {function}", text)
        text, layout = self.met(text, shape)
        return self.made(text, value, shape, elem, lo, hi, _after(text, layout), name)

    def made(
        self, text: str, value: Callable[[State], Array], shape: Shape, elem: str, lo: int, hi: int, layout: str,
        name: str = "",
    ) -> Var:  # fmt: skip
        """The same with nothing changed, in a layout that is known. Lines before the last are for it alone."""
        if len(shape) > 4 or any(n > 1024 for n in shape):
            raise Impossible("too large")
        var = super().define(text, value, shape, elem, lo, hi, name)
        if shape:
            self.laid[var.name], self.shapes[var.name] = layout, shape
        return var

    @contextmanager
    def block(self, into: list[Any], rounds: int = 1) -> Iterator[None]:
        self.memories.append([])
        with super().block(into, rounds):
            yield
        self.memories.pop()


@dataclass
class Memory:
    """Shared memory: the name of a descriptor of it, and where the interpreter has its array."""

    name: str
    shape: Shape
    elem: str
    lo: int
    hi: int
    buffers: bool  # the first dimension counts them
    smooth: bool  # no gaps


def _after(text: str, layout: str) -> str:
    """The layout of a result whose operands are in this one: that of a slice where it is a reduction."""
    reduced = REDUCED.match(text.partition(" = ")[2] if PAIR.match(text) else text)
    if not layout or reduced is None or "keep_dims" in text:
        return layout
    return "" if reduced[1] == "None" else f"gl.SliceLayout({reduced[1]}, {layout})"


def _numbered(match: re.Match[str]) -> str:
    """The places along an axis, which Gluon has no `broadcast_to` for."""
    sizes = match[2][1:-1].split(",")
    axis = next((k for k, n in enumerate(sizes) if n.strip() != "1"), 0)
    index = ", ".join(":" if k == axis else "None" for k in range(len(sizes)))
    return f"tl.full({match[3]}, 0, tl.int32) + {match[1]}" + (f"[{index}]" if len(sizes) > 1 else "")


def _ranged(match: re.Match[str], layout: str, rank: int) -> str:
    """A range in the layout that its place in a tile asks for."""
    start, end, index = match.groups()
    axis = 0
    if index is not None:
        axis = [part.strip() for part in index[1:-1].split(",")].index(":")
    return f"gl.arange({start}, {end}, {layouts.expanded(layout, rank, axis)}){index or ''}"
