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
from typing import Any

from weft import base
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
    """The thread that did it: the program's index in the grid, the warp in its block, the lane.

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
    """A program uses the machine wrongly; `others` are further places that are involved.

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
        self.hint = hint or type(self).hint
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
    """Two accesses by different threads, one of them a write, with no barrier between.

    >>> @gluon.jit
    ... def copy(x, out):
    ...     layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    ...     i = gl.arange(0, 128, layout)
    ...     memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ...     gl.nvidia.ampere.async_copy.async_copy_global_to_shared(memory, x + i)      # and no wait
    ...     gl.store(out + i, memory.load(layout))
    >>> x = np.zeros(128, np.float32)
    >>> try:
    ...     copy[(1,)](x, x.copy(), target="sim:cuda:80")
    ... except weft.sim.RaceError as error:
    ...     print(error.message, "/", error.notes[0].message)
    race: reads byte 0 of shared memory / an asynchronous copy by warp 0, lane 0, which is not ordered with it
    """

    hint = "a barrier between the two orders them; for asynchronous copies, wait for their group before it"


class OutOfBoundsError(SimulationError, base.OutOfBoundsError):
    """An access outside of every array. It is a `weft.OutOfBoundsError` too, which launches on the CPU raise.

    `argument` is the array that is nearest, `program` the program id; the address takes the place of an `index`.

    >>> try:
    ...     evaluate("tl.load(memory + tl.arange(0, 8))", memory=np.zeros(4, np.float32))
    ... except weft.OutOfBoundsError as error:
    ...     print(error.thread, error.count)
    lane 4 of warp 0, program (0, 0, 0) 16
    """

    hint = "pass a mask that is false where the index is outside of the array"

    def __init__(self, message: str, span: Span | None = None, *, argument: str | None = None, **more: Any) -> None:
        super().__init__(message, span, **more)
        self.argument = argument
        self.program = None if self.thread is None else self.thread.program


class UninitializedError(SimulationError):
    """A register or memory is read that was never written.

    >>> @gluon.jit
    ... def read(out):
    ...     layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    ...     memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ...     gl.store(out + gl.arange(0, 128, layout), memory.load(layout))
    >>> try:
    ...     read[(1,)](np.zeros(128, np.float32), target="sim:cuda:80")
    ... except weft.sim.UninitializedError as error:
    ...     print(error.message)
    reads byte 0 of shared memory, which was never written
    """

    hint = "write it before, or give the load an `other` for where its mask does not hold"


class MisalignedError(SimulationError):
    """A vector access at an address that is not a multiple of its size.

    A kernel can make a false promise:

    >>> try:
    ...     evaluate("tl.load(tl.multiple_of(x + 1, 16) + tl.arange(0, 128))", x=np.zeros(256, np.float32))
    ... except weft.sim.MisalignedError as error:
    ...     print(error.message)
    16 bytes at address 0x7000..., which is no multiple of 16
    """

    hint = "use narrower vectors, or align the address"


class DivergenceError(SimulationError):
    """Lanes of one warp disagree about a branch.

    Kernels branch on scalars, which all lanes share, so this is about lane programs that you write yourself:

    >>> from weft.ir.lane import Block, Builder, LaneProgram
    >>> from weft.machines import DEFAULT
    >>> body, then, otherwise = Block(), Block(), Block()
    >>> lane_is_odd = Builder(body).op("arith.trunci", [Builder(body).linear((0,), lane=(1, 0, 0, 0, 0))], "i1")
    >>> ends = [Builder(region).add("yield") for region in (then, otherwise)]
    >>> branch = Builder(body).add("if", [lane_is_odd], [], {}, [then, otherwise])
    >>> try:
    ...     weft.sim.run(LaneProgram("odd", DEFAULT, (), body, warps=1), 1, {})
    ... except weft.sim.DivergenceError as error:
    ...     print(error.message)
    the condition of `if` is False in lane 0 and True in lane 1
    """

    hint = "conditions of branches and loops must be the same in all lanes of a warp; mask accesses instead"


class FenceError(SimulationError):
    """Shared memory is written by ordinary stores and read by wgmma or a bulk copy, with no fence between.

    The compiler inserts the fences that a kernel leaves out. Layout IR is taken as it is:

    >>> from weft.gluon.nvidia.hopper import TensorDescriptor
    >>> @gluon.jit
    ... def store(out):
    ...     i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    ...     memory = gl.allocate_shared_memory(gl.int32, [128], out.layout, i)
    ...     gl.nvidia.hopper.tma.async_copy_shared_to_global(out, [0], memory)
    ...     gl.nvidia.hopper.tma.store_wait(0)
    >>> out = np.zeros(128, np.int32)
    >>> described = TensorDescriptor.from_tensor(out, [128], gl.NVMMASharedLayout(0, 32, rank=1))
    >>> text = store.warmup(described, grid=(1,), target="sim:cuda:90").asm["ttgir"]
    >>> unfenced = text.replace("ttng.fence_async_shared {bCluster = false}", "")
    >>> kernel = weft.compile(weft.compiler.IRSource(unfenced), target="sim:cuda:90")
    >>> try:
    ...     kernel[(1,)](described)
    ... except weft.sim.FenceError as error:
    ...     print(error.message)
    the asynchronous proxy reads byte 0 of shared memory, and may not see what was written
    """

    hint = "after the stores and before the barrier, each thread that wrote must call fence_async_shared"


class DeadlockError(SimulationError):
    """Threads wait for something that never happens.

    >>> @gluon.jit
    ... def wait():
    ...     bar = gl.nvidia.hopper.mbarrier.allocate_mbarrier()
    ...     gl.nvidia.hopper.mbarrier.init(bar, count=1)
    ...     gl.nvidia.hopper.mbarrier.wait(bar, 0)
    >>> try:
    ...     wait[(1,)](target="sim:cuda:90")
    ... except weft.sim.DeadlockError as error:
    ...     print(error.message)
    deadlock: phase 0 of the mbarrier at byte 0 never ends: 0 of 1 arrivals have come
    """

    hint = "every warp that a barrier expects must reach it, in the same order as the others"


class BarrierMisuseError(SimulationError):
    """An mbarrier is used wrongly: before its init, after its invalidate, or with too many arrivals.

    >>> @gluon.jit
    ... def arrive():
    ...     gl.nvidia.hopper.mbarrier.arrive(gl.nvidia.hopper.mbarrier.allocate_mbarrier(), count=1)
    >>> try:
    ...     arrive[(1,)](target="sim:cuda:90")
    ... except weft.sim.BarrierMisuseError as error:
    ...     print(error.message)
    there is no mbarrier at byte 0 of shared memory
    """

    hint = "init it once, before anyone uses it, with as many arrivals as there will be in each phase"


class BulkCopyWarning(WeftWarning):
    """A bulk load is still under way when its program ends, and no one reads what it loads.

    Kernels that load ahead to their end do so; in a cluster it may write into memory that is no longer the block's.

    >>> import warnings
    >>> from weft.gluon.nvidia.hopper import TensorDescriptor
    >>> @gluon.jit
    ... def load(x):
    ...     memory = gl.allocate_shared_memory(gl.int32, [128], x.layout)
    ...     bar = gl.nvidia.hopper.mbarrier.allocate_mbarrier()
    ...     gl.nvidia.hopper.mbarrier.init(bar, count=1)
    ...     gl.nvidia.hopper.mbarrier.expect(bar, x.block_type.nbytes)
    ...     gl.nvidia.hopper.tma.async_copy_global_to_shared(x, [0], bar, memory)
    >>> x = TensorDescriptor.from_tensor(np.zeros(128, np.int32), [128], gl.NVMMASharedLayout(0, 32, rank=1))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     launch = load[(1,)](x, target="sim:cuda:90")
    >>> [warning.category.__name__ for warning in caught]
    ['BulkCopyWarning']
    """


class BulkCopyError(SimulationError):
    """A bulk copy is given what the hardware refuses, or is still under way when its program ends.

    >>> from weft.gluon.nvidia.hopper import TensorDescriptor
    >>> @gluon.jit
    ... def store(out):
    ...     i = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    ...     memory = gl.allocate_shared_memory(gl.int32, [128], out.layout, i)
    ...     gl.nvidia.hopper.tma.async_copy_shared_to_global(out, [0], memory)          # and no store_wait
    >>> out = TensorDescriptor.from_tensor(np.zeros(128, np.int32), [128], gl.NVMMASharedLayout(0, 32, rank=1))
    >>> try:
    ...     store[(1,)](out, target="sim:cuda:90")
    ... except weft.sim.BulkCopyError as error:
    ...     print(error.message)
    a bulk copy that is never waited for may still read shared memory when the program ends
    """

    hint = "wait for every load on its mbarrier, and for every store with store_wait, before the program ends"


class InFlightError(SimulationError):
    """Registers that an asynchronous product works on are used before it is known to be done.

    >>> @gluon.jit
    ... def product(out):
    ...     wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    ...     ones = gl.full([64, 64], 1, gl.float16, gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0]))
    ...     memory = gl.allocate_shared_memory(gl.float16, [64, 64], gl.NVMMASharedLayout(128, 16), ones)
    ...     hopper: gl.constexpr = gl.nvidia.hopper
    ...     total = hopper.warpgroup_mma(memory, memory, gl.zeros([64, 64], gl.float32, wide), is_async=True)
    ...     total = hopper.warpgroup_mma_wait(1, deps=(total,))                         # 1 may be under way
    ...     gl.store(out, gl.max(gl.max(total, 0), 0))
    >>> try:
    ...     product[(1,)](np.zeros(1, np.float32), target="sim:cuda:90")
    ... except weft.sim.InFlightError as error:
    ...     print(error.message)
    `arith.maxnumf` uses registers that a wgmma still works on
    """

    hint = "use what warpgroup_mma_wait returns, with few enough products left outstanding"


class ScheduleError(SimulationError):
    """Results depend on the order of warps and lanes, or on when copies land, which the machine leaves open.

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
    """The program stopped itself by a `trap`. A `tl.device_assert` that fails is a DeviceAssertionError.

    >>> from weft.ir.lane import Block, Builder, LaneProgram
    >>> from weft.machines import DEFAULT
    >>> body = Block()
    >>> stop = Builder(body).add("trap")
    >>> try:
    ...     weft.sim.run(LaneProgram("stops", DEFAULT, (), body, warps=1), 1, {})
    ... except weft.sim.TrapError as error:
    ...     print(error.message)
    the program stopped itself
    """


# Tracebacks name a class by the module where users find it. Doctests are then found by `__test__` alone.
__test__ = {name: kind for name, kind in globals().items() if name in __all__}
for _each in __test__.values():
    _each.__module__ = "weft.sim"
