"""Move operations that only the multiplying warps need into their region, so that they overlap the first copies.

    %q = tt.load %pointers                                  ttg.warp_specialize
    ttg.warp_specialize                       becomes       default {
    default {                                                 %q = tt.load %pointers
      ... %q ...                                              ... %q ...
"""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir import Builder, tt
from weft.ir.gpu import ttg
from weft.ir.gpu.products import OperandFenceOp, SharedProductOp
from weft.ir.nvidia import ttng

from ..effects import shareable
from .specialized_loops import in_body


def sink(special: ttg.WarpSpecializeOp) -> None:
    """Let the kernel's own warps load what they alone use while the first copies of the other are under way.

    Operations before the warps part go to where they have parted: loads, what they need, and operands that are stored.
    """
    region = special.defaultRegion.block
    fence: Operation | None = None
    op = special.prev_op
    while op is not None:
        before = op.prev_op
        if isinstance(op, OperandFenceOp):
            fence = op
        elif _only_inside(op, special) and (shareable(op) or isinstance(op, tt.LoadOp) or _is_filled(op)):
            for moved in (fence, op) if _is_filled(op) and fence is not None else (op,):
                moved.detach()
                Builder.at_start(region).insert(moved)
                fence = None
        elif isinstance(op, tt.StoreOp) or op.regions or (not shareable(op) and not _is_shared(op)):
            return
        op = before


def _only_inside(op: Operation, special: ttg.WarpSpecializeOp) -> bool:
    """Whether nothing but the kernel's own warps uses the results of an operation, once the warps have parted."""
    users = [use.operation for r in op.results for use in r.uses]
    inside = special.defaultRegion.block
    return bool(users) and all(user is not special and in_body(inside, user) is not None for user in users)


def _is_filled(op: Operation) -> bool:
    """Whether an operation stores a tile to memory of its own, for products alone."""
    if not isinstance(op, ttg.LocalAllocOp) or op.src is None:
        return False
    return all(isinstance(use.operation, SharedProductOp) for use in op.result.uses)


def _is_shared(op: Operation) -> bool:
    """Whether an operation makes memory, or mbarriers, or waits until all blocks have made theirs."""
    makes = ttg.LocalAllocOp | ttg.MemDescIndexOp | ttng.InitBarrierOp | ttng.ClusterArriveOp | ttng.ClusterWaitOp
    return isinstance(op, makes | tt.LoadOp)
