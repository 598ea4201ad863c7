"""The generator's state: which variables there are, of which type, between which values."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .elements import DTYPES, NAMES, Array, is_float, is_int, limits
from .program import Array1D, Program, Simple, State
from .rounding import cast

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Var:
    """A scalar (shape ()) or a tile; `lo` and `hi` bound its elements."""

    name: str
    shape: Shape
    elem: str
    lo: int
    hi: int
    special: bool = False
    """Whether it is a float that may be anything, so that its bounds say nothing."""

    @property
    def numel(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Impossible(Exception):
    """What was about to be generated does not work out here; something else is tried."""


def checked(var: Var, value: Array) -> Array:
    """The interpreter's value, in the type and the bounds the generator believes in."""
    value = np.asarray(value)
    if value.dtype != DTYPES[var.elem] or value.shape != var.shape:
        raise AssertionError(
            f"{var.name}: {value.dtype}{value.shape} where {var.elem}{var.shape} was expected: a fault of the fuzzer"
        )
    if var.special or not value.size or var.elem == "i1":
        return value
    if not (var.lo <= int(value.min()) and int(value.max()) <= var.hi):
        raise AssertionError(f"{var.name} is not between {var.lo} and {var.hi}: a fault of the fuzzer")
    return value


class Generator:
    """Appends statements to a kernel."""

    def __init__(self, seed: int, apart: bool = False) -> None:
        self.rng = random.Random(seed)
        self.apart = apart  # no store has two lanes with one address
        rng = self.rng
        self.program = Program(seed, [], {}, {}, [], rng.choice((1, 1, 2, 3, 4)), [])
        self.blocks: list[list[Any]] = [self.program.body]
        self.scopes: list[list[Var]] = [[]]
        self.count = 0
        self.menu: list[tuple[Any, int]] | None = None  # operations other than those of the Triton language
        self.literal = False  # numbers are written down, not given at the launch
        self.special = False  # floats are special ones: see the module of this name
        self.rounds = 1  # how often the current block is run at most
        self.dims = self._choose_dims()
        self.max_numel = rng.choice((64, 256, 1024, 4096))

    def _choose_dims(self) -> list[int]:
        rng = self.rng
        size = rng.choice(("tiny", "small", "medium", "medium", "large"))
        pool = {"tiny": (1, 2, 4), "small": (2, 4, 8, 16), "medium": (1, 4, 16, 32, 64), "large": (16, 64, 128, 512)}
        return [rng.choice(pool[size]) for _ in range(3)]

    # -- writing ------------------------------------------------------------------------------------------------------

    def fresh(self, prefix: str = "v") -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str, run: Callable[[State], None]) -> None:
        self.put(text, run)

    def put(self, text: str, run: Callable[[State], None]) -> None:
        """Append a statement, its text as it is."""
        self.blocks[-1].append(Simple(text, run))

    def define(
        self, text: str, value: Callable[[State], Array], shape: Shape, elem: str, lo: int, hi: int, name: str = ""
    ) -> Var:
        """`name = text`, a new variable; lines of the text before the last one come before that."""
        least, most = limits(elem)
        special = self.special and is_float(elem)
        if special:
            lo, hi = least, most
        elif is_float(elem) and (lo < least or hi > most):
            raise Impossible("a float that may not be exact")
        if is_int(elem) and (lo < least or hi > most):
            lo, hi = least, most  # it wraps
        if elem == "i1":
            lo, hi = 0, 1
        var = Var(name or self.fresh(), tuple(shape), elem, lo, hi, special)

        def run(state: State) -> None:
            state.env[var.name] = checked(var, np.asarray(value(state)).astype(DTYPES[elem], copy=False))

        *before, last = text.split("\n")
        self.put("\n".join([*before, f"{var.name} = {last}"]), run)
        self.scopes[-1].append(var)
        return var

    @contextmanager
    def any_values(self, special: bool = True) -> Iterator[None]:
        """Floats are special ones within this block."""
        before, self.special = self.special, special
        try:
            yield
        finally:
            self.special = before

    @contextmanager
    def block(self, into: list[Any], rounds: int = 1) -> Iterator[None]:
        """Write into the body of a loop or a branch; what it defines is forgotten."""
        self.blocks.append(into)
        self.scopes.append([])
        before, self.rounds = self.rounds, self.rounds * rounds
        try:
            yield
        finally:
            self.rounds = before
            self.blocks.pop()
            self.scopes.pop()

    # -- choosing -----------------------------------------------------------------------------------------------------

    def visible(self) -> list[Var]:
        """The variables that may be read here, each once, as it is now."""
        found: dict[str, Var] = {}
        for scope in self.scopes:
            for var in scope:
                if not is_float(var.elem) or var.special == self.special:
                    found[var.name] = var
        return list(found.values())

    def pick(self, wanted: Callable[[Var], bool]) -> Var:
        """A variable, the newer the likelier."""
        found = [v for v in self.visible() if wanted(v)]
        if not found:
            raise Impossible("no such variable")
        weights = [1 + 4 * (k + 1) / len(found) for k in range(len(found))]
        return self.rng.choices(found, weights)[0]

    def forget(self, name: str) -> None:
        for scope in self.scopes:
            scope[:] = [v for v in scope if v.name != name]

    def rebound(self, var: Var, lo: int, hi: int) -> Var:
        """Note other bounds for a variable."""
        for scope in self.scopes:
            for k, v in enumerate(scope):
                if v.name == var.name:
                    scope[k] = replace(v, lo=lo, hi=hi)
        return replace(var, lo=lo, hi=hi)

    def shape(self, rank: int | None = None, most: int | None = None) -> Shape:
        """A shape out of the kernel's own extents."""
        rng = self.rng
        rank = rank if rank is not None else rng.choice((1, 1, 2, 2, 2, 3))
        shape = [rng.choice(self.dims) for _ in range(rank)]
        while int(np.prod(shape)) > (most or self.max_numel):
            k = max(range(rank), key=lambda k: shape[k])
            shape[k] //= 2
        return tuple(shape)

    def array(self, elem: str, kind: str, lo: int | None = None, hi: int | None = None) -> Array1D:
        """A new array parameter."""
        least, most = limits(elem)
        if lo is None or hi is None:
            lo, hi = (-8, 8) if is_float(elem) else (least, most)
        name = {"in": "x", "out": "o", "inout": "m", "atomic": "a", "sunk": "t"}[kind]
        made = Array1D(f"{name}{len(self.program.arrays)}", elem, kind, lo, hi, tight=self.rng.random() < 0.8)
        made.special = self.special and is_float(elem)
        self.program.arrays.append(made)
        return made

    def scalar(self, value: int) -> str:
        """A run-time integer argument of this value."""
        for name, have in self.program.scalars.items():
            if have == value and self.rng.random() < 0.7:
                return name
        name = f"n{len(self.program.scalars)}"
        self.program.scalars[name] = value
        return name

    # -- conversions that keep bounds ---------------------------------------------------------------------------------

    def clamp(self, var: Var, lo: int, hi: int) -> Var:
        """The variable limited to [lo, hi]."""
        if var.special or (lo <= var.lo and var.hi <= hi):
            return var
        dtype = DTYPES[var.elem]
        if is_float(var.elem):
            lo, hi = _as_f32(lo), _as_f32(hi)

        def literal(n: int) -> str:
            text = f"{n}.0" if is_float(var.elem) else str(n)
            return f"tl.cast({text}, {NAMES[var.elem]})"  # a plain number would be taken for an i32 or an f32

        narrow = ".to(tl.bfloat16)" if var.elem == "bf16" else ""  # minimum and maximum of these are f32
        return self.define(
            f"tl.minimum(tl.maximum({var.name}, {literal(lo)}), {literal(hi)}){narrow}",
            lambda s: np.minimum(np.maximum(s[var.name], dtype.type(lo)), dtype.type(hi)),
            var.shape,
            var.elem,
            max(lo, min(var.lo, hi)),
            min(hi, max(var.hi, lo)),
        )

    def converted(self, var: Var, elem: str) -> Var:
        """The variable as another element type, exactly if that is a float."""
        if var.elem == elem:
            return var
        lo, hi = limits(elem)
        if self.special:
            pass  # every conversion is defined
        elif is_float(elem) and (var.lo < lo or var.hi > hi):
            bound = self.rng.choice((4, 16, 64, min(1000, hi)))
            var = self.clamp(var, max(-bound, limits(var.elem)[0]), bound)
        elif is_float(var.elem) and is_int(elem) and (var.lo < lo or var.hi > hi):
            var = self.clamp(var, max(lo, limits(var.elem)[0]), min(hi, limits(var.elem)[1]))
        bounds = limits(elem) if var.special else (var.lo, var.hi)
        return self.define(f"{var.name}.to({NAMES[elem]})", lambda s: cast(s[var.name], elem), var.shape, elem, *bounds)


def _as_f32(n: int) -> int:
    """The nearest number towards zero that float32 has, as which Triton takes a literal whatever it is cast to."""
    beyond = max(0, abs(n).bit_length() - 24)
    return (abs(n) >> beyond << beyond) * (1 if n > 0 else -1)


def wrapped(values: Sequence[int]) -> tuple[int, int]:
    return min(values), max(values)
