"""What the checkers find: one family of errors, each naming the source line, the thread and the address.

SimulationError
  RaceError             two threads, one address, a write, nothing that orders them
  OutOfBoundsError      an access outside of every array, or of shared memory
  UninitializedError    a value that was never written decides something
  MisalignedError       a vector at an address that is no multiple of its size
  DivergenceError       lanes of one warp disagree on a branch
  FenceError            the asynchronous proxy reads what was written without a fence for it
  DeadlockError         barriers that not all who are expected reach
  BarrierMisuseError    an mbarrier used before its init, or arrived at too often
  BulkCopyError         a bulk copy with a bad tensor map or address, or a store that nobody waits for
  InFlightError         registers of a wgmma are used before it was waited for
  ScheduleError         results that depend on the order of warps, or on when copies land
  TrapError             the program ended itself
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.base import Note, Span, WeftError, WeftWarning, render

__all__ = [
    "BarrierMisuseError",
    "BulkCopyError",
    "BulkCopyWarning",
    "DeadlockError",
    "DivergenceError",
    "FenceError",
    "InFlightError",
    "MisalignedError",
    "OutOfBoundsError",
    "RaceError",
    "ScheduleError",
    "SimulationError",
    "Thread",
    "TrapError",
    "UninitializedError",
]


@dataclass(frozen=True, slots=True)
class Thread:
    """Who did it: the program's index in the grid, the warp in its block, the lane.

    >>> try:
    ...     evaluate("tl.load(memory + tl.arange(0, 8))", memory=np.zeros(4, np.float32))
    ... except weft.sim.OutOfBoundsError as error:
    ...     print(error.thread)
    lane 4 of warp 0, program (0, 0, 0)
    """

    program: tuple[int, int, int]
    warp: int
    lane: int | None = None

    def __str__(self) -> str:
        lane = f"lane {self.lane} of " if self.lane is not None else ""
        return f"{lane}warp {self.warp}, program {self.program}"


class SimulationError(WeftError):
    """Something is wrong with how a program uses the machine; `others` are further places that have to do with it.

    >>> try:
    ...     evaluate("tl.load(memory + tl.arange(0, 8))", memory=np.zeros(4, np.float32))
    ... except weft.sim.SimulationError as error:
    ...     print(type(error).__name__)
    OutOfBoundsError
    """

    hint = ""

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        *,
        thread: Thread | None = None,
        address: int | None = None,
        space: str = "",
        others: Sequence[Note] = (),
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.span, self.thread, self.address, self.space = span, thread, address, space
        self.notes = tuple(others)
        self.hint = hint or self.hint
        self.count = 1
        """How often the same was found at this place."""

    def __str__(self) -> str:
        text = self.message
        if self.thread is not None:
            text += f" ({self.thread})"
        if self.count > 1:
            text += f", and {self.count - 1} more of its kind here"
        return render("error", text, self.span, None, self.notes, self.hint or None)


class RaceError(SimulationError):
    """Two accesses by different threads, one of them a write, with no barrier between."""

    hint = "a barrier between the two orders them; for asynchronous copies, wait for their group before it"


class OutOfBoundsError(SimulationError):
    """An access outside of every array.

    >>> try:
    ...     evaluate("tl.load(memory + tl.arange(0, 8))", memory=np.zeros(4, np.float32))
    ... except weft.sim.OutOfBoundsError as error:
    ...     print(error.thread, error.count)
    lane 4 of warp 0, program (0, 0, 0) 16
    """

    hint = "mask the access off where the index is outside"


class UninitializedError(SimulationError):
    """A register or memory is read that was never written."""

    hint = "write it before, or give the load an `other` for where its mask does not hold"


class MisalignedError(SimulationError):
    """A vector at an address that is no multiple of its size."""

    hint = "use narrower vectors, or align the address"


class DivergenceError(SimulationError):
    """Lanes of one warp disagree about a branch."""

    hint = "conditions of branches and loops must be the same in all lanes of a warp; mask accesses instead"


class FenceError(SimulationError):
    """Shared memory is written by ordinary stores and read by wgmma or a bulk copy, with no fence between."""

    hint = "after the stores and before the barrier, each thread that wrote must call fence_async_shared"


class DeadlockError(SimulationError):
    """Some wait for others that never come."""

    hint = "every warp that a barrier expects must reach it, in the same order as the others"


class BarrierMisuseError(SimulationError):
    """An mbarrier is used in a way that has no meaning."""

    hint = "init it once, before anyone uses it, with as many arrivals as there will be in each phase"


class BulkCopyWarning(WeftWarning):
    """A bulk load that nobody waits for is under way when a program ends; what it loads is read by nobody.

    Kernels that load ahead to their end do so; in a cluster it may write into memory that is no longer the block's.
    """


class BulkCopyError(SimulationError):
    """A bulk copy is given what the hardware refuses, or is still under way when its program ends."""

    hint = "wait for every load on its mbarrier, and for every store with store_wait, before the program ends"


class InFlightError(SimulationError):
    """Registers that an asynchronous product works on are used before it is known to be done."""

    hint = "use what warpgroup_mma_wait returns, with few enough products left outstanding"


class ScheduleError(SimulationError):
    """Results depend on what the machine leaves open: when copies land, in which order warps and lanes act.

    >>> @weft.jit
    ... def last(out):
    ...     i = tl.arange(0, 64)
    ...     tl.store(out + i * 0, i)
    >>> try:
    ...     with weft.sim.options(order="all"):
    ...         last[(1,)](np.zeros(1, np.int32), target="sim:cuda:80")
    ... except weft.sim.ScheduleError as error:
    ...     print(str(error).splitlines()[-1])
    hint: find what is not ordered: a wait or a barrier that is missing, or floating-point atomics
    """

    hint = "find what is not ordered: a wait or a barrier that is missing, or floating-point atomics"


class TrapError(SimulationError):
    """The program stopped itself."""
