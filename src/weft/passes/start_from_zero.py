"""Products by wgmma that are added to nothing say so, and no registers are set to zero for them.

    %zero = arith.constant dense<0.0>
    %d = ttng.warp_group_dot %a, %b, %zero
becomes
    %d = ttng.warp_group_dot %a, %b, %zero, %false          the instruction does not read what it adds to
"""

from __future__ import annotations

from math import copysign

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, i1, splat_value
from weft.ir.gpu.ttng import WarpGroupDotOp

from .removal import remove

__all__ = ["start_from_zero"]


def start_from_zero(root: Operation) -> None:
    """Rewrite the products inside `root` whose accumulator is a constant zero."""
    for op in list(root.walk()):
        if isinstance(op, WarpGroupDotOp) and op.useC is None and _is_zero(op.c):
            b = Builder.before(op)
            operands = (op.a, op.b, op.c, b.constant(False, i1))
            result = b.create(WarpGroupDotOp, operands, (op.d.type,), dict(op.properties)).d
            result.name_hint = op.d.name_hint
            op.d.replace_all_uses_with(result)
            remove(op)


def _is_zero(value: SSAValue) -> bool:
    op = value.owner
    number = splat_value(op.value) if isinstance(op, arith.ConstantOp) else None
    return number is not None and number == 0 and copysign(1, number) > 0
