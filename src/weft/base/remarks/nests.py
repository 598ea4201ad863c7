"""Remarks about the CPU: what is fused into which loop nest, along what it is vectorised, what is kept in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .memory import Placed
from .remark import Remark, Site

__all__ = ["InMemory", "LoopNest", "NotFused", "ProductWaits", "RegisterBlock", "ScratchBuffer", "VectorAccess"]

@dataclass(frozen=True)
class LoopNest(Remark):
    """Loops over the elements of a tile, and what is done at each of them."""

    kind: ClassVar[str] = "loop nest"
    shape: tuple[int, ...]
    does: tuple[Site, ...]
    """Stores, reductions, what is kept in memory."""
    fused: int
    """How many operations are computed on the way, element by element, with nothing kept of them."""
    lanes: int
    bits: int
    """Of the widest element: a vector has as many lanes as have room."""
    along: tuple[int, ...]
    """The dimensions that the lanes run along."""
    unrolled: int
    """Vectors in the body of the innermost loop."""
    iterations: int
    considered: tuple[tuple[str, float], ...] = ()
    """Lanes along which dimensions, and the price of that, in loads of one vector for all that is accessed."""
    scalar: str = ""
    """Why there are no lanes."""
    versions: tuple[str, ...] = ()
    """What further copies of the loops leave out or do otherwise, and when they run."""
    vector_bits: int = 0
    """Of the processor's widest vectors; 0 where that is not said."""

    @property
    def message(self) -> str:
        over = f"over {'x'.join(map(str, self.shape))}" if self.shape else "over one element"
        lanes = f"{self.lanes} lanes of {self.bits} bits along {_dimensions(self.along)}" if self.along else "no lanes"
        lanes += f", as {self.scalar}" if self.scalar else ""
        what = "vector" if self.along else "element"
        sizes = f"{self.unrolled} {what}{'s' if self.unrolled > 1 else ''} at a time, {self.iterations} iteration"
        sizes += "s" if self.iterations > 1 else ""
        fused = f"{self.fused} operation{'s' if self.fused != 1 else ''} fused"
        text = f"{over}: {lanes}, {sizes}, for {', '.join(map(str, self.does))}, {fused}"
        others = [f"along {name} {price:.1f}" for name, price in self.considered]
        text += f"; prices of lanes: {', '.join(others)}" if len(others) > 1 else ""
        return "; ".join((text, *(f"a version {version}" for version in self.versions)))


def _dimensions(along: tuple[int, ...]) -> str:
    return f"dimension{'s' if len(along) > 1 else ''} {' and '.join(map(str, along))}"


@dataclass(frozen=True)
class VectorAccess(Remark):
    """How the lanes of a vector load or store their elements."""

    kind: ClassVar[str] = "vector access"
    access: str
    tile: str
    form: str
    """whole vectors, one value, transposed, every other element, nearby elements, short runs, element by element,
    one after the other."""
    lanes: int
    fact: str
    """Why not by whole vectors; empty where it is."""
    value: str = ""
    """The argument that decides it, if there is one."""
    mask: str = ""
    """Why its mask is computed for each vector, whatever tiles lie within; empty where there is no such mask."""
    run: int = 0
    """Elements of the tile that are neighbours in memory; 0 where that is not said."""
    apart: tuple[int, str] = (0, "")
    """Elements from one such run to the next: a number, times an argument if one is named; (-1, "") if not known."""
    turn: tuple[int, str] = (0, "")
    """The same from one iteration of the loop around it to the next."""

    @property
    def message(self) -> str:
        text = f"{self.access} of {self.tile} by {self.lanes} lanes: {self.form}"
        text += f", as {self.fact}" if self.fact else ""
        return f"{text}; under a mask for each vector, as {self.mask}" if self.mask else text


@dataclass(frozen=True)
class ScratchBuffer(Placed):
    """A buffer in the scratch memory of a program, of the thread that runs it."""

    kind: ClassVar[str] = "scratch buffer"


@dataclass(frozen=True)
class InMemory(Remark):
    """A tile that is written to scratch memory in the place of being computed where it is used."""

    kind: ClassVar[str] = "in memory"
    tile: str
    variable: str
    why: str

    @property
    def message(self) -> str:
        name = f" (`{self.variable}`)" if self.variable else ""
        return f"{self.tile}{name} is kept: {self.why}"


@dataclass(frozen=True)
class NotFused(Remark):
    """Something that begins a loop nest of its own, although another one is open."""

    kind: ClassVar[str] = "not fused"
    LOADED_AGAIN: ClassVar[str] = "it loads again what these have just stored"
    """The reason that a kernel's author can do away with."""
    what: Site
    into: Site
    """What the open nest is for."""
    reason: str

    @property
    def message(self) -> str:
        return f"{self.what} is not in the loops of {self.into}: {self.reason}"


@dataclass(frozen=True)
class RegisterBlock(Remark):
    """How a product is computed: its operands packed, a block of the result held in registers."""

    kind: ClassVar[str] = "register block"
    shape: tuple[int, ...]
    elements: str
    packed: str
    instruction: str
    lanes: int
    rows: int
    vectors: int
    tile_rows: int = 1
    """Rows of a tile, where the instruction works on tiles and not on vectors."""
    in_place: tuple[bool, bool] = (False, False)
    """Whether the left operand, and the right one, are read where the kernel loads them from."""

    @property
    def message(self) -> str:
        size = "x".join(map(str, self.shape))
        kind = "vectors of" if self.tile_rows == 1 else f"tiles of {self.tile_rows} rows and"
        block = f"{self.rows} rows of {self.vectors} {kind} {self.lanes} lanes"
        there = [side for side, is_there in zip(("left", "right"), self.in_place, strict=True) if is_there]
        place = "".join(f", the {side} operand read where it lies" for side in there)
        return f"{size}, {self.elements} packed as {self.packed}: {self.instruction}, {block} at a time{place}"


@dataclass(frozen=True)
class ProductWaits(Remark):
    """A product that is computed at once for several iterations of its loop."""

    kind: ClassVar[str] = "product waits"
    iterations: int
    depth: int

    @property
    def message(self) -> str:
        return f"its sums are taken up once for {self.iterations} iterations, a depth of {self.depth}"
