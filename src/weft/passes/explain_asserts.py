"""Let a failed assertion report the values that it compares; only with the option `debug`.

    %c = arith.cmpi slt, %x, %n : tensor<64xi32>
    tt.assert %c, "x is too large" : tensor<64xi1>
becomes
    %l, %r = %x, %n in 64 bits
    "weft.check"(%c, %l, %r) <{what = "assert", message = "x is too large", relation = "slt"}>

A condition `a or b` is told by `a`, for both are false where it is; `low <= x and x <= high` is told by `x`. Checks
that the language adds itself (an integer that wraps, a hint that is false) tell the value alone. Other conditions are
told by their place only.

Not done here: assertions inside of the function of a reduction, whose places mean nothing; they stay `tt.assert`.
"""

from __future__ import annotations

import re

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from weft.ir import Builder, CheckOp, bit_width, find, i64, int_value, is_int, str_attr, tt

from .removal import remove

_FUNCTIONS = (tt.ReduceOp, tt.ScanOp, tt.MapElementwiseOp)
_OF_A_VALUE = re.compile(r"int\d+ overflow detected for operation |the hint ")
"""How the messages of the language's own assertions begin."""


def explain_asserts(root: Operation) -> None:
    """Rewrite the assertions of every function."""
    for op in find(root, tt.AssertOp):
        if not _within(op):
            _explain(op)


def _within(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, _FUNCTIONS):
        parent = parent.parent_op()
    return parent is not None


def _explain(op: tt.AssertOp) -> None:
    b = Builder.before(op)
    condition = op.condition
    message = op.message
    text = message.data if isinstance(message, StringAttr) else ""
    if bit_width(condition.type) > 1:
        condition = b.cmpi("ne", condition, b.constant(0, condition.type))
    compared = _compared(condition)
    properties: dict[str, Attribute] = {"what": str_attr("assert"), "message": str_attr(text)}
    values: list[SSAValue] = []
    if compared is not None:
        relation, *sides = compared
        values = [_wide(b, side, unsigned=relation[0] == "u") for side in sides]
        if _OF_A_VALUE.match(text) or relation == "within":
            properties["what"] = str_attr("value")
            values = values[:1]
        else:
            properties["relation"] = str_attr(relation)
    b.create(CheckOp, (condition, *values), (), properties)
    remove(op)


def _compared(condition: SSAValue) -> tuple[str, SSAValue, SSAValue] | None:
    """The comparison that is false where a condition is: (relation, left, right)."""
    owner = condition.owner
    if isinstance(owner, arith.OrIOp):
        return _compared(owner.operands[0])
    if isinstance(owner, arith.AndIOp):
        low, high = (_compared(operand) for operand in owner.operands)
        if low is not None and high is not None and low[1] is high[1]:
            return "within", low[1], low[2]
        return None
    if isinstance(owner, arith.CmpiOp):
        left, right = owner.operands
        if not is_int(left.type) or bit_width(left.type) == 1:
            return None
        relation = arith.CMPI_COMPARISON_OPERATIONS[int_value(owner.properties["predicate"])]
        return relation, left, right
    return None


def _wide(b: Builder, value: SSAValue, *, unsigned: bool) -> SSAValue:
    if bit_width(value.type) == 64:
        return value
    return b.cast(arith.ExtUIOp if unsigned else arith.ExtSIOp, value, i64)
