"""Insert fences between asynchronous copies by threads and wgmma products that read the copied data.

    %t = ttg.async_wait {num = 1}                       %t = ttg.async_wait {num = 1}
    %d = ttng.warp_group_dot %a, %b, %c     becomes     ttng.fence_async_shared {bCluster = false}
                                                        %d = ttng.warp_group_dot %a, %b, %c

`cp.async` writes through the generic proxy, wgmma reads through the asynchronous proxy, and between the two there must
be a fence (PTX ISA, wgmma.mma_async). Triton writes none for copies that its pipeliner begins ahead, neither in its
layout IR nor in its PTX. This is done only for layout IR as text: in a Gluon kernel the author decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from weft.base.remarks import NO_REMARKS, Fence, RemarkCollector, Site
from weft.ir import Builder, bool_attr, span_of, walk
from weft.ir.gpu.ttg import AsyncCopyGlobalToLocalOp, AsyncWaitOp, LocalAllocOp, LocalStoreOp
from weft.ir.nvidia.ttng import FenceAsyncSharedOp, WarpGroupDotOp


def fence_copies(module: ModuleOp, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Put a fence after each wait for copies that has none, in a module with products of warp groups."""
    ops = list(walk(module))
    if not all(any(isinstance(op, kind) for op in ops) for kind in (AsyncCopyGlobalToLocalOp, WarpGroupDotOp)):
        return
    for op in ops:
        if isinstance(op, AsyncWaitOp) and not isinstance(op.next_op, FenceAsyncSharedOp):
            fence = Builder.after(op).create(FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})
            tell_fences([fence], remarks)


def plainly(op: Operation) -> Site:
    """An operation in plain words, with its place."""
    words = {"ttg.async_wait": "asynchronous copies", "ttng.warp_group_dot": "a product of warp groups"}
    bulk = "a bulk copy" if op.name.startswith("ttng.async_tma") else "a store"
    return Site(words.get(op.name, bulk), span_of(op))


def _stores(op: Operation) -> bool:
    return isinstance(op, LocalStoreOp | LocalAllocOp) and bool(op.operands)


def _reader(op: Operation | None) -> WarpGroupDotOp | None:
    """The first product of warp groups from an operation on, to the end of its block."""
    while op is not None:
        for inner in walk(op):
            if isinstance(inner, WarpGroupDotOp):
                return inner
        op = op.next_op
    return None


def tell_fences(ops: Iterable[Operation], remarks: RemarkCollector) -> None:
    """Say between which operations each of the fences among some stands."""
    for fence in ops if remarks else ():
        if isinstance(fence, FenceAsyncSharedOp):
            before, behind = fence.prev_op, fence.next_op
            while before is not None and not (isinstance(before, AsyncWaitOp) or _stores(before)):
                before = before.prev_op
            block = fence.parent
            around = block.parent_op() if block is not None else None
            next_iteration = block.first_op if block is not None and isinstance(around, scf.ForOp) else None
            reader = _reader(behind) or _reader(next_iteration)
            earlier = plainly(before) if before is not None else Site("what threads have stored before")
            later = plainly(reader) if reader is not None else Site("products of warp groups")
            remarks.add(Fence(span_of(fence), earlier, later))
