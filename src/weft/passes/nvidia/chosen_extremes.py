"""Replace comparisons that choose the larger or smaller of two numbers, and keep NaN, by one instruction.

    %larger = arith.cmpf ogt, %x, %c
    %nan = arith.cmpf une, %x, %x
    %take = arith.ori %larger, %nan                 becomes        %y = arith.maximumf %x, %c
    %y = arith.select %take, %x, %c

Inductor writes this wherever it clamps, and in its reductions. Three instructions of the slower pipe become one.

The two differ in one case: of 0 and -0, the comparisons choose the second operand, and the instruction chooses 0 as the
larger. So %c must be a number other than zero, or the choice must be the combining function of a reduction, whose order
is unspecified. Numbers clamped to 0 and 1 stay as they are: if they cannot be NaN, such as fractions of an image's
pixels, the assembler lets the preceding instruction clamp them.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import Builder, element_of, f32, find, int_value, tt

from ..fold import constant_of
from ..removal import put_in_place

OGT, OLT, UNE = 2, 4, 13
"""Predicates of `arith.cmpf`."""
EXTREMES: dict[int, type[Operation]] = {OGT: arith.MaximumfOp, OLT: arith.MinimumfOp}


def name_extremes(root: Operation) -> None:
    """Rewrite the choices inside `root`."""
    for select in find(root, arith.SelectOp):
        condition, x, y = select.operands
        extreme = _extreme(condition, x, y) if element_of(x.type) == f32 else None
        if extreme is not None and (constant_of(y) not in (None, 0, 1) or _is_combined(select)):
            result = Builder.before(select).binary(extreme, x, y)
            put_in_place(select, None, [result])


def _extreme(condition: SSAValue, x: SSAValue, y: SSAValue) -> type[Operation] | None:
    """What a choice of `x` or `y` finds, if its condition is that `x` is NaN or the larger, or the smaller."""
    if not isinstance(condition.owner, arith.OrIOp):
        return None
    for a, b in (condition.owner.operands, reversed(condition.owner.operands)):
        if _compares(b, x, x) == UNE:
            return EXTREMES.get(_compares(a, x, y))
    return None


def _compares(value: SSAValue, x: SSAValue, y: SSAValue) -> int:
    """The predicate by which a value compares `x` and `y`; -1 if it does not."""
    op = value.owner
    if isinstance(op, arith.CmpfOp) and op.operands[0] is x and op.operands[1] is y:
        return int_value(op.properties["predicate"])
    return -1


def _is_combined(select: arith.SelectOp) -> bool:
    """Whether it is all that a reduction does with two elements."""
    block = select.parent
    return (
        isinstance(block, Block)
        and isinstance(block.parent_op(), tt.ReduceOp)
        and len(block.args) == 2
        and {*select.operands[1:]} == {*block.args}
        and block.last_op is not None
        and block.last_op.operands[0] is select.result
    )
