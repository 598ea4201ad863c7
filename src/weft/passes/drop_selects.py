"""Drop selects that only change elements which a masked store leaves out.

    %d = arith.select %m, %a, %zero                %d = arith.select %m, %a, %zero
    %s = tt.reduce %d ...                          %s = tt.reduce %d ...
    %r = arith.mulf %d, %scale          becomes    %r = arith.mulf %a, %scale
    tt.store %out, %r, %m                          tt.store %out, %r, %m

A layer norm of a row that may be shorter than its tile sets the differences beyond the row's end to zero, for the sum
of squares. The store does not need that: it is one instruction of twenty for each element of bf16.

This is done along elementwise operations whose results only go to stores, all of them masked by the condition, or by it
and something else.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.base import each_once
from weft.ir import find, is_tensor, tt
from weft.ops.table import ELEMENTWISE


def drop_selects(root: Operation) -> bool:
    """Let stores, and what is computed for them alone, take the side of a select that their mask chooses; whether there
    were any."""
    has_changed = False
    for store in find(root, tt.StoreOp):
        if len(store.operands) > 2 and is_tensor(store.operands[2].type):
            holding = _conditions(store.operands[2])
            if any(_selects(use.operation, holding) for value in holding for use in value.uses):
                has_changed |= _before(store, holding)
    return has_changed


def _before(store: Operation, holding: set[SSAValue]) -> bool:
    """Go back from a store over what is computed for it alone; whether anything has changed."""
    ours: set[Operation] = {store}
    has_changed = False
    op: Operation | None = store
    while op is not None:
        if op.name in ELEMENTWISE and op.results and all(use.operation in ours for use in op.results[0].uses):
            ours.add(op)
        for k in (1,) if op is store else range(len(op.operands)) if op in ours else ():
            value = op.operands[k]
            while isinstance(value.owner, Operation) and _selects(value.owner, holding):
                value = value.owner.operands[1]
            if value is not op.operands[k]:
                op.operands[k] = value
                has_changed = True
        op = op.prev_op
    return has_changed


def _selects(op: Operation, holding: set[SSAValue]) -> bool:
    return isinstance(op, arith.SelectOp) and op.operands[0] in holding


def _conditions(mask: SSAValue) -> set[SSAValue]:
    """What holds where a mask does."""
    found = set[SSAValue]()
    todo = [mask]
    for value in each_once(todo):
        found.add(value)
        if isinstance(value.owner, arith.AndIOp):
            todo += value.owner.operands
    return found
