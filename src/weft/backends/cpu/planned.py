"""A nest as it is seen while its loops are planned, by what cuts them (extents.py) and walks along rows (walks.py).

`nest.Nest` is one, and asks both of these about itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import Analysis, Steps
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value as Reg


class Root(Protocol):
    """Something done at every point of a nest."""

    shape: tuple[int, ...]

    @property
    def op(self) -> Op | None:
        """The anchor, where there is one."""

    def inputs(self) -> list[tuple[Value, Coords]]:
        """Values needed at each point, with their coordinates in the nest."""

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        """Pointers (or a buffer) written at each point, with the element size in bits: for the choice of lanes."""

    def prepare(self, ev: Evaluator, coords: Callable[[Coords], Coords]) -> Callable[[], None]:
        """Evaluate at one point; the result does the writing (all roots evaluate before any writes)."""


class Planned(Protocol):
    """What there is to do, and which bits of the index space are lanes, copies of the body, and loops."""

    f: Function
    env: dict[Value, Reg | Buffer]
    roots: list[Root]
    coords: Coords
    reduce_bits: tuple[int, ...]
    visited: dict[tuple[Value, Coords], None]
    analysis: Analysis
    lane_bits: tuple[int, ...]
    unroll: tuple[int, ...]
    inner_bits: list[int]
    outer_bits: list[int]
    transposes: dict[int, tuple[int, ...]]
    zips: dict[int, tuple[int, ...]]
    unsettled: set[int]

    def accesses(self) -> list[tuple[Steps, int, Value | None]]:
        """All that is loaded and stored: the steps of its address, the bits of an element, and what is loaded."""

    def aligned(self, op: Op, coords: Coords, lanes: Sequence[int]) -> bool:
        """Whether a quotient or remainder is taken of aligned runs of lanes by a multiple of their number."""

    def copies(self) -> list[dict[int, int]]:
        """For each copy of the unrolled body, the sources that replace the unrolled bits."""

    def loop_runs(self, bits: Sequence[int]) -> list[tuple[int, ...]]:
        """Loop bits grouped so that in no coordinate a group is torn apart; innermost first."""
