"""What there is while a launch is simulated: the launch, contexts and their values, why they wait, what they access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from weft.base import Note, Span
from weft.base.grids import blocks_along_x
from weft.ir.lane import Block, LaneOp, LaneProgram, Value, Variable

from .errors import SimulationError, Thread
from .late import first_of
from .memory import GlobalMemory
from .options import Options
from .report import Report
from .values import Array, Fragment


class Watching(Protocol):
    """What is told of each operation, where someone watches (debugger.py)."""

    def enter(self, context: Any, block: Block) -> None:
        """The arguments of a region have values."""

    def before(self, context: Any, op: LaneOp) -> None:
        """An operation comes next."""

    def after(self, context: Any, op: LaneOp) -> None:
        """Its results have values."""


@dataclass
class Launch:
    """What all blocks of a launch have in common."""

    program: LaneProgram
    grid: tuple[int, int, int]
    """How many programs there are."""
    memory: GlobalMemory
    arguments: dict[str, Fragment]
    options: Options
    report: Report
    names: Watching | None = None
    """The kernel's variables, where someone watches."""
    counting: bool = False
    """Whether it is only counted: memory is not written, and what is read is known only of arrays that `memory` has."""
    steady: bool = False
    """Whether iterations that count alike may stand for others (steady.py)."""
    sliced: Any = None
    """Counting: the program taken apart (sliced.py)."""
    suppose: bool | None = None
    turns: int | None = None
    """Iterations of loops whose bounds or condition is not known, where it is counted; None if that is an error."""
    """Counting: what conditions of branches are taken to be where they are not known; None: that is an error."""
    steps: int = 0
    told: Callable[..., None] = lambda done=None: None
    """Told of each operation, and of how many programs have ended: the progress that a terminal shows."""
    between: Any = None
    """Who accessed global memory, where races between programs are looked for (between.py)."""
    patterns: Any = None
    """Counting: what accesses have counted (patterns.py)."""

    @property
    def blocks_along_x(self) -> int:
        """How many blocks there are along x, without those of clusters: as few as may be. Who counts has one for each
        program, which makes no difference to what is counted."""
        x, _, _ = self.grid
        return x if self.counting else blocks_along_x(self.grid, self.program.programs_each, 1)

    def error(self, error: SimulationError) -> None:
        """Raise it, or keep it: one for each kind and place."""
        if self.options.order == "random":
            error.notes = (*error.notes, Note(f"found where {self.options.describe()}"))
        if self.options.raise_first:
            self.report.errors.append(error)
            raise error
        for earlier in self.report.errors:
            if type(earlier) is type(error) and earlier.span == error.span:
                earlier.count += 1
                return
        self.report.errors[:] = first_of([*self.report.errors, error])


class Environment:
    """The values of a context; those of the context that it split from are found through `outer`."""

    __slots__ = ("names", "outer", "rows", "values")

    def __init__(self, outer: Environment | None = None, rows: Array | None = None) -> None:
        self.values: dict[Value, Fragment] = {}
        self.outer, self.rows = outer, rows
        self.names: dict[str, Variable] = dict(outer.names) if outer is not None else {}
        """The kernel's variables, where someone watches: the value that each has now."""

    def __getitem__(self, value: Value) -> Fragment:
        fragment = self.values.get(value)
        if fragment is None:
            assert self.outer is not None and self.rows is not None, f"{value} has no value"
            fragment = self.values[value] = self.outer[value].rows(self.rows)
        return fragment


@dataclass
class Wait:
    """Why a context does not go on: `ready` says whether it may again, `what` is for people."""

    ready: Callable[[], bool]
    what: str
    span: Span | None
    parts: bool = False
    """Whether it waits for its own parts, which is never the cause of a deadlock."""
    late: Callable[[], tuple[str, list[Note]]] | None = None
    """`what` as it is when nobody can go on, and the places that have to do with it."""
    idle: bool = False
    """Whether it only asks again and again: that it can do so is no progress."""


@dataclass
class Flight:
    """An asynchronous operation that is done when nothing else goes on, or before."""

    what: str
    land: Callable[[], None]
    owner: object = None


@dataclass
class Access:
    """One access of memory: arrays [warp, lane, register] of addresses and of who takes part."""

    op: LaneOp
    space: str
    address: Array
    active: Array
    width: int
    counted: bool = True
    """Whether address and mask are known."""
    proxy: bool = False
    """Whether the asynchronous proxy does it."""
    known: bool = True
    """Whether what is written is known, or what was read: only the counter reads what it does not know."""
    home: Array | None = None
    """In the space `cluster` the block of the batch whose memory each address is in; `address` counts within it."""
    number: int = 0
    """Which it is of the accesses of its operation."""


class Blocks(Protocol):
    """What a context has to know of the blocks that run together (`machine.Batch`)."""

    program: LaneProgram

    def index_of(self, block: int) -> tuple[int, int, int]:
        """The index in the grid of the program that a block executes."""


B = TypeVar("B", bound=Blocks)


@dataclass
class Context(Generic[B]):
    """Warps that run in step. `warps` numbers them over all blocks of the batch."""

    batch: B
    warps: Array
    env: Environment
    done: bool = False
    waits: Wait | None = None
    running: Iterator[Wait] | None = None
    place: tuple[str, int] | None = None
    """The line that it is at, where someone watches."""
    first: int = 0
    """The first warp in the block of the partition that they belong to."""
    _by_program: list[Array] | None = None

    @property
    def count(self) -> int:
        """How many warps."""
        return len(self.warps)

    def thread(self, row: int, lane: int | None = None) -> Thread:
        """Who the lane of the row-th warp is."""
        block, warp = divmod(int(self.warps[row]), self.batch.program.warps)
        return Thread(self.batch.index_of(block), warp, lane)

    def by_block(self) -> Iterator[tuple[int, Array]]:
        """The blocks that the warps belong to, each with the rows of those."""
        blocks = self.warps // self.batch.program.warps
        for block in np.unique(blocks).tolist():
            yield block, np.flatnonzero(blocks == block)

    def by_program(self) -> list[Array]:
        """The rows of the warps of each program of the grid."""
        if self._by_program is None:
            programs = self.warps // (self.batch.program.warps * self.batch.program.blocks)
            self._by_program = np.split(np.arange(self.count), np.flatnonzero(np.diff(programs)) + 1)
        return self._by_program

    def part(self, rows: Array) -> Context[B]:
        """A context of some of the warps."""
        return Context(self.batch, self.warps[rows], Environment(self.env, rows), first=self.first)

    def narrow(self, rows: Array) -> None:
        """Go on with some of the warps; the others have returned."""
        self.env = Environment(self.env, rows)
        self.warps, self._by_program = self.warps[rows], None

    def widen(self, warps: Array, env: Environment) -> None:
        """Go on with all of the warps, which have executed a program."""
        self.warps, self.env, self._by_program = warps, env, None


AnyContext: TypeAlias = Context[Any]
"""For those who must not know what a batch is."""
