"""Mark wgmma products that start from zero, so that no registers are set to zero for them.

    %zero = arith.constant dense<0.0>
    %d = ttng.warp_group_dot %a, %b, %zero
becomes
    %d = ttng.warp_group_dot %a, %b, %zero, %false          the instruction does not read what it adds to

So do those that are added to a number, a row or a column (a bias), which is added afterwards:

    %c = tt.broadcast %bias
    %d = ttng.warp_group_dot %a, %b, %c
becomes
    %0 = ttng.warp_group_dot %a, %b, %zero, %false
    %d = arith.addf %0, %c

Several registers hold the same of it, and each has to be written before the instruction: as many moves as additions.
But they would come between it and products of the iteration before, for which ptxas then waits (overlap_products.py).
"""

from __future__ import annotations

from math import copysign

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, element_of, find, i1, is_int, splat_value, tt
from weft.ir.nvidia.ttng import WarpGroupDotOp

from ..removal import remove

REPEATED = (arith.ConstantOp, tt.SplatOp, tt.BroadcastOp)
"""Operations whose result may be the same in several registers."""


def start_from_zero(root: Operation) -> None:
    """Rewrite the products inside `root` whose accumulator is a constant zero, or repeats itself."""
    for op in find(root, WarpGroupDotOp):
        if op.useC is None:
            if _is_zero(op.c):
                _from_zero(op, op.c)
            elif isinstance(op.c.owner, REPEATED):
                _add_afterwards(op)


def _from_zero(op: WarpGroupDotOp, zero: SSAValue) -> WarpGroupDotOp:
    """A product in the place of another one, but added to nothing."""
    b = Builder.before(op)
    operands = (op.a, op.b, zero, b.constant(False, i1))
    dot = b.create(WarpGroupDotOp, operands, (op.d.type,), dict(op.properties))
    dot.d.name_hint = op.d.name_hint
    op.d.replace_all_uses_with(dot.d)
    remove(op)
    return dot


def _add_afterwards(op: WarpGroupDotOp) -> None:
    """Add what a product was added to when it is over, and those that only go on with its result are too."""
    total = op.c
    last = _from_zero(op, Builder.before(op).constant(0, total.type))
    while (following := _continuation(last)) is not None:
        last = following
    added = arith.AddiOp if is_int(element_of(total.type)) else arith.AddfOp
    result = Builder.after(last).binary(added, last.d, total)
    result.name_hint = last.d.name_hint
    last.d.replace_uses_with_if(result, lambda use: use.operation is not result.owner)


def _continuation(op: WarpGroupDotOp) -> WarpGroupDotOp | None:
    """The product in the same block that adds to a result, if nothing else uses it."""
    uses = list(op.d.uses)
    following = uses[0].operation if len(uses) == 1 else None
    if not isinstance(following, WarpGroupDotOp) or following.c is not op.d or following.parent is not op.parent:
        return None
    return following if following.useC is None and uses[0].index == 2 else None


def _is_zero(value: SSAValue) -> bool:
    op = value.owner
    number = splat_value(op.value) if isinstance(op, arith.ConstantOp) else None
    return number is not None and number == 0 and copysign(1, number) > 0
