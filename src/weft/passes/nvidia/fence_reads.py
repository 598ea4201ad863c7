"""Fences where bulk copies and products of warp groups read what threads have written to shared memory.

    ttg.local_store %x, %m                               ttg.local_store %x, %m
    ttng.async_tma_copy_local_to_global %d[...] %m       ttng.fence_async_shared {bCluster = false}
                                              becomes    ttng.async_tma_copy_local_to_global %d[...] %m

Both read through the asynchronous proxy, which need not see the stores of threads without a fence in between (PTX ISA,
async proxy). Where the kernel has one nothing is added: what is written and not fenced yet is followed through
loops, branches and partitions, buffer by buffer. Later versions of Triton than 3.6 do so for Gluon kernels too, and
those that are written for them have no fences.

Done for Gluon kernels from source. Not for layout IR as text, which is to run as it stands (but see `fence_copies`);
and not for what `pipeline_loads` copies, which knows its fences.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from weft.base.remarks import NO_REMARKS, Fence, RemarkCollector
from weft.ir import Builder, bool_attr, span_of
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

Unfenced = dict[SSAValue | None, Operation]
"""Allocations that threads have written since the last fence, and by what; None is some that is not known."""


def fence_reads(module: ModuleOp, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Put a fence before each asynchronous read of shared memory that threads wrote, if there is none."""
    for op in module.body.block.ops:
        for region in op.regions:
            for block in region.blocks:
                _Walk(remarks).block(block, {})


class _Walk:
    """A way through a function, with what is unfenced."""

    def __init__(self, remarks: RemarkCollector) -> None:
        self.remarks = remarks
        self.parameters: dict[SSAValue, SSAValue] = {}
        """What the arguments of partitions are outside of them."""
        self.told: Unfenced = {}
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

    def block(self, block: Block, unfenced: Unfenced) -> None:
        """Go through a block; `unfenced` becomes what is so at its end."""
        for op in list(block.ops):
            self.operation(op, unfenced)

    def operation(self, op: Operation, unfenced: Unfenced) -> None:
        if isinstance(op, ttng.FenceAsyncSharedOp):
            unfenced.clear()
        elif isinstance(op, ttng.ArriveBarrierOp | ttng.AsyncCopyMbarrierArriveOp):
            self.told |= unfenced
        elif written := next((by for memory in _read(op) if (by := _meet(self.root(memory), unfenced))), None):
            if self.remarks:
                self.remarks.add(Fence(span_of(op), plainly(written), plainly(op)))
            Builder.before(op).create(ttng.FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})
            unfenced.clear()
        elif isinstance(op, ttg.WarpSpecializeOp):
            self.partitions(op, unfenced)
        elif op.name == "tt.call":
            unfenced[None] = op
        elif op.regions:
            self.regions(op, unfenced)
        else:
            unfenced |= {self.root(memory): op for memory in _written(op)}

    def regions(self, op: Operation, unfenced: Unfenced) -> None:
        """A loop goes round, so what its end leaves unfenced is so at its beginning too; of branches one is taken."""
        loops = op.name in ("scf.for", "scf.while")
        before = dict(unfenced)
        for _ in range(2 if loops else 1):
            ends = [dict(before) for _ in op.regions]
            for region, end in zip(op.regions, ends, strict=True):
                for block in region.blocks:
                    self.block(block, end)
            for end in ends if loops else ():
                before |= end
        unfenced.clear()
        for end in [before] if loops else ends:
            unfenced |= end

    def partitions(self, op: ttg.WarpSpecializeOp, unfenced: Unfenced) -> None:
        """All partitions run side by side: each may read what another has told it of."""
        holder = op.partitionOpHolder.block.first_op
        bodies = [op.defaultRegion.block, *(region.block for region in (holder.regions if holder else ()))]
        for body in bodies[1:]:
            self.parameters.update(zip(body.args, op.explicitCaptures, strict=True))
        told, self.told = self.told, {}
        ends: Unfenced = {}
        for _ in range(2):
            before = unfenced | self.told
            for body in bodies:
                end = dict(before)
                self.block(body, end)
                ends |= end
        self.told |= told
        unfenced |= ends


def _meet(root: SSAValue | None, unfenced: Unfenced) -> Operation | None:
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
    """The shared memory that an operation of threads writes, `cp.async` included."""
    if isinstance(op, _WRITERS):
        return [op.dst]
    if isinstance(op, ttg.LocalAllocOp):
        return [op.result] if op.src is not None else []
    if isinstance(op, ttg.AsyncCopyGlobalToLocalOp):
        return [op.result]
    return []
