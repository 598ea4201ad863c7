"""Masks that end: of neighbours along an axis, those that a mask keeps come first.

    (rows < M)[:, None] & (k + 0..63 < K)[None, :]       along the columns of each row: true ... true false ... false

A tile whose rows have any number of elements is masked so. An access of several neighbours at once then takes the first
few of them, and one number says what the mask would say of each.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value, is_tensor

from .axis import AxisFacts
from .limits import PASSING, axis_before

__all__ = ["conjuncts", "ends_in_runs"]

BELOW = frozenset((2, 3, 6, 7))
"""slt, sle, ult, ule: predicates by which a number that grows ends below another."""
ABOVE = frozenset((4, 5, 8, 9))


def conjuncts(mask: SSAValue) -> list[SSAValue]:
    """The masks of which a mask is the conjunction, as far as it is one."""
    owner = mask.owner
    if isinstance(owner, Operation) and owner.name == "arith.andi":
        return [x for operand in owner.operands for x in conjuncts(operand)]
    return [mask]


def ends_in_runs(facts: AxisFacts, mask: SSAValue, axis: int, run: int) -> bool:
    """Whether in each aligned run of so many neighbours along an axis none that a mask keeps comes behind one that it
    does not keep."""
    if not is_tensor(mask.type) or facts.of(mask).constancy[axis] >= run:
        return True
    owner = mask.owner
    if not isinstance(owner, Operation):
        return False
    if owner.name == "arith.andi":
        return all(ends_in_runs(facts, x, axis, run) for x in owner.operands)
    if owner.name in PASSING or owner.name in ("tt.expand_dims", "tt.trans"):
        before = axis_before(owner, axis)
        return before is not None and ends_in_runs(facts, owner.operands[0], before, run)
    if owner.name != "arith.cmpi":
        return False
    index, end = owner.operands
    predicate = int_value(owner.properties["predicate"])
    if predicate in ABOVE:
        index, end = end, index
    elif predicate not in BELOW:
        return False
    return facts.of(index).contiguity[axis] >= run and facts.of(end).constancy[axis] >= run
