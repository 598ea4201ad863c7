"""Compute one exponential instead of two where one of them is exp(0), as in an online softmax.

    %m = arith.select %c, %a, %b                     %m = arith.select %c, %a, %b
    %x = exp (%a - %m)                               %e = exp ((%c ? %b : %a) - %m)
    %y = exp (%b - %m)                   becomes     %one = (%m - %m) + 1
                                                     %x = %c ? %one : %e
                                                     %y = %c ? %e : %one

An online softmax has the largest element so far (%a), a new one (%b), and the larger of both (%m). It scales its sum by
exp (%a - %m) and the new term by exp (%b - %m). An exponential takes 9 instructions, and its replacement 4.

The bits are the same: %one is 1 for every number, and NaN where %m is infinite or NaN, as the exponential was.
"""

from __future__ import annotations

from functools import cache

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, element_of, f32, find, tt
from weft.ops.libdevice import overloads

from .removal import remove

FUNCTIONS = ("exp", "exp2")
"""Functions of libdevice, as `tl.extra.libdevice` names them."""


@cache
def _symbols() -> frozenset[str]:
    """The symbols of these for float32."""
    return frozenset(symbol for name in FUNCTIONS for given, _, symbol in overloads()[name] if given == "f")


def share_exponentials(root: Operation) -> None:
    """Rewrite the exponentials inside `root`."""
    for select in find(root, arith.SelectOp):
        _, a, b = select.operands
        if element_of(a.type) == f32 and a is not b:
            first, second = _exponential(a, select), _exponential(b, select)
            if first is not None and second is not None and _function(first) == _function(second):
                _share(select, first, second)


def _exponential(x: SSAValue, select: arith.SelectOp) -> Operation | None:
    """The exponential of `x` less what is selected."""
    for use in select.result.uses:
        difference = use.operation
        if isinstance(difference, arith.SubfOp) and difference.operands[0] is x and use.index == 1:
            for of_difference in difference.results[0].uses:
                op: Operation = of_difference.operation
                if _function(op) and op.parent is select.parent:
                    return op
    return None


def _function(op: Operation) -> str:
    """Which exponential it is; empty for any other operation."""
    if isinstance(op, math.ExpOp | math.Exp2Op):
        return op.name
    symbol = getattr(op.properties.get("symbol"), "data", "") if isinstance(op, tt.ExternElementwiseOp) else ""
    return symbol if symbol in _symbols() else ""


def _share(select: arith.SelectOp, first: Operation, second: Operation) -> None:
    """Compute one exponential behind a choice, in the place of two."""
    condition, a, b = select.operands
    build = Builder.after(select)
    chosen = select.result
    other = build.select(condition, b, a)
    difference = build.binary(arith.SubfOp, other, chosen)
    power = build.create(type(first), (difference,), (difference.type,), first.properties).results[0]
    nothing = build.binary(arith.SubfOp, chosen, chosen)
    one = build.binary(arith.AddfOp, nothing, build.constant(1.0, nothing.type))
    for op, choices in ((first, (one, power)), (second, (power, one))):
        op.results[0].replace_all_uses_with(build.select(condition, *choices))
        remove(op)
