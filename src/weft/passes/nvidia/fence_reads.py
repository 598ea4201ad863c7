"""Insert fences where bulk copies and wgmma products read data that threads have written to shared memory.

    ttg.local_store %x, %m                               ttg.local_store %x, %m
    ttng.async_tma_copy_local_to_global %d[...] %m       ttng.fence_async_shared {bCluster = false}
                                              becomes    ttng.async_tma_copy_local_to_global %d[...] %m

Both read through the asynchronous proxy, which need not see the stores of threads without a fence in between (PTX ISA,
async proxy). If the kernel has a fence, none is added: an analysis follows unfenced writes through loops, branches and
partitions, buffer by buffer. Data that cp.async copies has arrived only after a wait, so a fence before that wait does
not count. Versions of Triton later than 3.6 do this too, and Gluon kernels written for them have no fences.

This is done for Gluon kernels from source. It is not done for layout IR as text, which should run as it is (but see
`fence_copies`), and not for the copies of `pipeline_loads`, which inserts its own fences.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from weft.base.remarks import NO_REMARKS, Fence, RemarkCollector
from weft.ir import Builder, bool_attr, int_value, span_of
from weft.ir.gpu import ttg
from weft.ir.nvidia import ttng

from .fence_copies import plainly

VIEWS = (
    ttg.MemDescIndexOp,
    ttg.MemDescSubsliceOp,
    ttg.MemDescTransOp,
    ttg.MemDescReshapeOp,
    ttg.MemDescReinterpretOp,
)

Written = dict[SSAValue | None, Operation]
"""Allocations that threads have written, and by what; None is some that is not known."""


@dataclass
class State:
    """What has been written at a place in the program."""

    unfenced: Written = field(default_factory=dict)
    """Since the last fence."""
    copied: Written = field(default_factory=dict)
    """Bytes written by copies that may be in flight; they count as unfenced after the wait for these."""

    def copy(self) -> State:
        """The same, to go on from here in another way."""
        return State(dict(self.unfenced), dict(self.copied))

    def add(self, other: State) -> None:
        """What has been written here or there."""
        self.unfenced |= other.unfenced
        self.copied |= other.copied

    def become(self, ends: Iterable[State]) -> None:
        """What has been written by one of several ways."""
        self.unfenced, self.copied = {}, {}
        for end in ends:
            self.add(end)


def fence_reads(module: ModuleOp, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Put a fence before each asynchronous read of shared memory that threads wrote, if there is none."""
    for op in module.body.block.ops:
        for region in op.regions:
            for block in region.blocks:
                _Walk(remarks).block(block, State())


class _Walk:
    """A way through a function, with what is unfenced."""

    def __init__(self, remarks: RemarkCollector) -> None:
        self.remarks = remarks
        self.parameters: dict[SSAValue, SSAValue] = {}
        """What the arguments of partitions are outside of them."""
        self.told = State()
        """What was unfenced where this partition told others, by an mbarrier, that it has come so far."""

    def root(self, memory: SSAValue) -> SSAValue | None:
        """The allocation that memory is a part of; None where it is not known."""
        while True:
            owner = memory.owner
            if isinstance(owner, ttg.LocalAllocOp):
                return memory
            if isinstance(owner, VIEWS):
                memory = owner.operands[0]
            elif memory in self.parameters:
                memory = self.parameters[memory]
            else:
                return None

    def block(self, block: Block, state: State) -> None:
        """Go through a block; the state becomes that at its end."""
        for op in list(block.ops):
            self.operation(op, state)

    def operation(self, op: Operation, state: State) -> None:
        if isinstance(op, ttng.FenceAsyncSharedOp):
            state.unfenced.clear()
        elif isinstance(op, ttng.ArriveBarrierOp | ttng.AsyncCopyMbarrierArriveOp):
            self.told.add(state)
        elif isinstance(op, ttg.AsyncWaitOp | ttng.WaitBarrierOp):
            state.unfenced |= state.copied
            if isinstance(op, ttg.AsyncWaitOp) and not int_value(op.num):
                state.copied.clear()
        elif written := next((by for memory in _read(op) if (by := _meet(self.root(memory), state.unfenced))), None):
            if self.remarks:
                self.remarks.add(Fence(span_of(op), plainly(written), plainly(op)))
            Builder.before(op).create(ttng.FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})
            state.unfenced.clear()
        elif isinstance(op, ttg.WarpSpecializeOp):
            self.partitions(op, state)
        elif op.name == "tt.call":
            state.unfenced[None] = op
        elif op.regions:
            self.regions(op, state)
        elif isinstance(op, ttg.AsyncCopyGlobalToLocalOp):
            state.copied[self.root(op.result)] = op
        else:
            state.unfenced |= {self.root(memory): op for memory in _written(op)}

    def regions(self, op: Operation, state: State) -> None:
        """A loop goes round, so what its end leaves unfenced is so at its beginning too; of branches one is taken."""
        loops = op.name in ("scf.for", "scf.while")
        before = state.copy()
        for _ in range(2 if loops else 1):
            ends = [before.copy() for _ in op.regions]
            for region, end in zip(op.regions, ends, strict=True):
                for block in region.blocks:
                    self.block(block, end)
            for end in ends if loops else ():
                before.add(end)
        state.become([before] if loops else ends)

    def partitions(self, op: ttg.WarpSpecializeOp, state: State) -> None:
        """All partitions run side by side: each may read what another has told it of."""
        holder = op.partitionOpHolder.block.first_op
        bodies = [op.defaultRegion.block, *(region.block for region in (holder.regions if holder else ()))]
        for body in bodies[1:]:
            self.parameters.update(zip(body.args, op.explicitCaptures, strict=True))
        told, self.told = self.told, State()
        ends = State()
        for _ in range(2):
            before = state.copy()
            before.add(self.told)
            for body in bodies:
                end = before.copy()
                self.block(body, end)
                ends.add(end)
        self.told.add(told)
        state.add(ends)


def _meet(root: SSAValue | None, unfenced: Written) -> Operation | None:
    """What has written memory that is not fenced."""
    return next(iter(unfenced.values()), None) if root is None else unfenced.get(root, unfenced.get(None))


def _read(op: Operation) -> list[SSAValue]:
    """The shared memory that an operation reads through the asynchronous proxy."""
    if isinstance(op, ttng.AsyncTMACopyLocalToGlobalOp | ttng.AsyncTMAReduceOp | ttng.AsyncTMAScatterOp):
        return [op.src]
    if isinstance(op, ttng.WarpGroupDotOp):
        return [v for v in op.operands[:2] if getattr(v.type, "name", "") == "ttg.memdesc"]
    return []


_WRITERS = (ttg.LocalStoreOp, ttg.LocalScatterOp, ttg.LocalAtomicScatterRMWOp, ttng.AsyncSharedStoreOp)


def _written(op: Operation) -> list[SSAValue]:
    """The shared memory that an operation of threads writes at once."""
    if isinstance(op, _WRITERS):
        return [op.dst]
    if isinstance(op, ttg.LocalAllocOp):
        return [op.result] if op.src is not None else []
    return []
