"""Find which elements of a product are stored in the end: the others may have any value.

    %d = dot %a, %b, %acc                   a row of %d is made of that row of %a
    %c = truncf %d                          element by element
    tt.store %p, %c, %rows < %M             rows from %M on are dropped

If all uses of a product's result are elementwise operations that end in stores, only elements within the limits that
all their masks share matter. So a row of an operand that is taken modulo M (rows past the end wrap around to 0, so that
they can be loaded without a mask) is the row itself wherever it matters.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.base import each_once
from weft.ir import tt
from weft.ir.gpu.products import SharedProductOp
from weft.ops.table import ELEMENTWISE, PACKING

from ..affine import Forms
from .tile_limits import Limit, limits_of


def limits_of_result(value: SSAValue, loop: scf.ForOp, forms: Forms) -> list[Limit] | None:
    """The limits of the elements of a product's result that are stored; None where they go elsewhere too.

    The product is in a loop, and what goes on into the next iteration of a loop around that is none of its limits':
    they are made of other numbers there.
    """
    stores: list[tt.StoreOp] = []
    todo = [value]
    for x in each_once(todo):
        for use in x.uses:
            further = _further(use.operation, use.index, loop, stores)
            if further is None:
                return None
            todo += further
    kept: list[Limit] | None = None
    for store in stores:
        limits = limits_of(store.mask, forms, all_of_it=False)
        kept = limits if kept is None else [x for x in kept if x in limits]
    return kept or []


def _further(op: Operation, index: int, loop: scf.ForOp, stores: list[tt.StoreOp]) -> list[SSAValue] | None:
    """Where an operand goes on to, element by element; a store is noted. None where an element goes to others."""
    if isinstance(op, tt.StoreOp) and index == 1:
        stores.append(op)
        return []
    if isinstance(op, SharedProductOp) and index == 2:
        return [op.d]
    if op.name == "ttg.convert_layout" or (op.name in ELEMENTWISE and op.name not in PACKING):
        return list(op.results)
    if isinstance(op, scf.ForOp) and index >= 3:
        return [op.body.block.args[index - 2], op.results[index - 3]]
    if isinstance(op, scf.YieldOp):
        parent = op.parent_op()
        if isinstance(parent, scf.ForOp) and _is_beside(parent, loop):
            return [parent.body.block.args[index + 1], parent.results[index]]
        if isinstance(parent, scf.IfOp):
            return [parent.results[index]]
    return None


def _is_beside(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an operation is in the block that a loop is in, or deeper."""
    at: Operation | None = op
    while at is not None and at.parent is not loop.parent:
        at = at.parent_op()
    return at is not None
