"""Products by wgmma that go on while the next turn of their loop begins.

    %d = ttng.warp_group_dot %a, %b, %acc
    scf.yield %d
becomes
    %0 = ttng.warp_group_dot %a, %b, %acc {isAsync = true}
    %d = ttng.warp_group_dot_wait %0 {pendings = 1 : i32}       the product of the turn before is over
    scf.yield %d

and what the loop yields is awaited after it. Only where nothing but the next turn's product uses the result, and where
operands stay as they are meanwhile: in one of several buffers, or made before the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.ir import Builder, bool_attr, i32_attr, is_tensor
from weft.ir.gpu.ttg import LocalAllocOp
from weft.ir.gpu.ttng import FenceAsyncSharedOp, WarpGroupDotOp, WarpGroupDotWaitOp

from .removal import remove

__all__ = ["drop_fences", "hoist_operands", "overlap_products"]

VIEWS = ("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_subslice", "ttg.memdesc_index")


def overlap_products(loop: scf.ForOp) -> Operation | None:
    """Let the products of a loop go on, if all of them can. Gives the wait in the loop; None where nothing changed."""
    body = loop.body.block
    found = [op for op in body.walk() if isinstance(op, WarpGroupDotOp)]
    if not found or not all(_goes_on(loop, op) for op in found):
        return None
    for op in found:
        op.properties["isAsync"] = bool_attr(True)
    results: list[SSAValue] = [op.d for op in found]
    wait = _wait(Builder.after(found[-1]), results, len(found))
    end = body.last_op
    assert end is not None
    for old, new in zip(results, wait.results, strict=True):
        for i, value in enumerate(end.operands):
            if value is old:
                end.operands[i] = new
    handed = [loop.results[i] for i, x in enumerate(end.operands) if x in wait.results]
    over = _wait(Builder.after(loop), handed, 0)
    for old, new in zip(handed, over.results, strict=True):
        old.replace_uses_with_if(new, lambda use: use.operation is not over)
    return wait


def _wait(b: Builder, values: Sequence[SSAValue], pending: int) -> WarpGroupDotWaitOp:
    made = b.create(WarpGroupDotWaitOp, values, [v.type for v in values], {"pendings": i32_attr(pending)})
    for old, new in zip(values, made.results, strict=True):
        new.name_hint = old.name_hint
    return made


def _goes_on(loop: scf.ForOp, op: WarpGroupDotOp) -> bool:
    """Whether a product adds to what the loop carries, and its operands outlast the turn."""
    body, total = loop.body.block, op.c
    end = body.last_op
    if op.parent is not body or not isinstance(total, BlockArgument) or total.block is not body:
        return False
    uses = [(u.operation, u.index) for u in op.d.uses]
    alone = uses == [(end, total.index - 1)] and [u.operation for u in total.uses] == [op]
    return alone and all(_outlasts(loop, x) for x in (op.a, op.b))


def _outlasts(loop: scf.ForOp, memory: SSAValue) -> bool:
    if is_tensor(memory.type):
        return False  # registers, which the next turn computes anew
    op = memory.owner
    while isinstance(op, Operation) and loop.is_ancestor(op):
        if op.name == "ttg.memdesc_index":
            return True
        if op.name not in VIEWS:
            return False
        op = op.operands[0].owner
    return True


def hoist_operands(loop: scf.ForOp) -> None:
    """Operands that a loop does not change are stored to shared memory before it, and fenced there."""
    for op in list(loop.body.block.ops):
        if not isinstance(op, LocalAllocOp) or op.src is None or not _is_outside(op.src, loop):
            continue
        if any(not isinstance(u.operation, WarpGroupDotOp) for u in op.result.uses):
            continue
        op.detach()  # type: ignore[no-untyped-call]
        b = Builder.before(loop)
        b.insert(op)
        b.create(FenceAsyncSharedOp, (), (), {"bCluster": bool_attr(False)})


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    if isinstance(value, BlockArgument):
        return value.block is not loop.body.block
    return isinstance(value.owner, Operation) and not loop.is_ancestor(value.owner)


def drop_fences(loop: scf.ForOp) -> None:
    """Where a loop stores no operand of a product itself, the fences before its products have nothing to do."""
    ops = list(loop.body.block.ops)
    if any(isinstance(op, LocalAllocOp) for op in ops):
        return
    for op, following in itertools.pairwise(ops):
        if isinstance(op, FenceAsyncSharedOp) and isinstance(following, WarpGroupDotOp):
            remove(op)
