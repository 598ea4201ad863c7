"""The iterations of a `for`: Python's ranges as loops that count up, which are the only ones that the IR has.

    range(a, b, 2)     %i from a to b step 2
    range(a, b, -2)    %k from b to a step 2,  i = a + b - %k         a step known at compile time, mirrored
    range(a, b, s)     %t from 0 to n step 1,  i = a + %t * s         where s may be of either sign, or 0

In the last form, which ranges of unsigned numbers have too, n is how many iterations Python has, counted before the
loop without wrapping: the distance between the bounds is an unsigned number, as is the size of the step, and the
counter has 64 bits.  A step of 0 has no iterations; with the option `debug` it ends the launch with an error.  A step
that is known to be positive (the number of programs in the grid, a product of such) has the first form.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from weft.ir import Builder, i64, int_value, tt
from weft.language import core

from .frame import Frame
from .values import describe, unwrap


@dataclass(frozen=True, slots=True)
class Iterations:
    """The bounds of the loop, and what the variable is in an iteration."""

    kind: Any
    """The type of the variable."""
    low: SSAValue
    high: SSAValue
    step: SSAValue
    value: Callable[[SSAValue], SSAValue]
    """The variable, where the builder stands in the body, from the loop's own counter."""


def iterations_of(frame: Frame, node: ast.For, bounds: Sequence[Any]) -> Iterations:
    """The iterations of range(start, end, step)."""
    builder, semantic = frame.builder, frame.semantic
    constant = unwrap(bounds[2])
    if isinstance(constant, int) and constant == 0:
        hint = "a loop without iterations has start == end"
        raise frame.error("the step of a range must not be 0", node.iter, hint=hint)
    scalars = [_bound(frame, v, node, name) for v, name in zip(bounds, ("start", "end", "step"), strict=True)]
    kind = semantic.integer_promote_impl(scalars[0].dtype, scalars[1].dtype)
    kind = semantic.integer_promote_impl(kind, scalars[2].dtype)
    start, end, step = (semantic.cast(s, kind).handle for s in scalars)
    signed = not kind.is_int_unsigned()  # the IR's loops compare signed numbers
    if not isinstance(constant, int):
        if signed and _is_positive(scalars[2].handle):
            return Iterations(kind, start, end, step, lambda counter: counter)
        nonzero = semantic.not_equal(scalars[2], 0)
        core.device_assert(nonzero, "the step of a range must not be 0", _semantic=semantic)
    elif constant > 0 and signed:
        return Iterations(kind, start, end, step, lambda counter: counter)
    elif signed and constant > -(1 << (kind.primitive_bitwidth - 1)):
        size = builder.constant(-constant, step.type)
        return Iterations(kind, end, start, size, lambda counter: _mirrored(builder, end, start, counter))
    return _counted(builder, kind, start, end, step, not scalars[2].dtype.is_int_unsigned())


def _bound(frame: Frame, value: Any, node: ast.For, name: str) -> Any:
    scalar = frame.semantic.to_tensor(value)
    if not isinstance(scalar, core.tensor) or scalar.type.is_block() or not scalar.dtype.is_int():
        raise frame.error(f"the {name} of a `for` must be an integer scalar, found {describe(value)}", node.iter)
    return scalar


def _is_positive(value: SSAValue) -> bool:
    """Whether a step is at least 1 by the way it is made."""
    work = [value]
    while work:
        value = work.pop()
        owner = value.owner
        if isinstance(owner, arith.ConstantOp):
            if int_value(owner.properties["value"]) <= 0:
                return False
        elif isinstance(owner, arith.MuliOp | arith.AddiOp | arith.ExtSIOp | arith.ExtUIOp):
            work += owner.operands
        elif not isinstance(owner, tt.GetNumProgramsOp):
            return False
    return True


def _mirrored(builder: Builder, low: SSAValue, high: SSAValue, counter: SSAValue) -> SSAValue:
    left = builder.binary(arith.SubiOp, high, counter)
    return builder.binary(arith.AddiOp, left, low)


def _counted(builder: Builder, kind: Any, start: SSAValue, end: SSAValue, step: SSAValue, signed: bool) -> Iterations:
    """A loop over the numbers of the iterations, for a step of which nothing is known; `signed` if it may be
    negative.
    """
    zero, one = builder.constant(0, step.type), builder.constant(1, step.type)
    less = "slt" if kind.is_int_signed() else "ult"
    low, high, size = start, end, step
    if signed:
        down = builder.cmpi("slt", step, zero)
        low, high = builder.select(down, end, start), builder.select(down, start, end)
        size = builder.select(down, builder.binary(arith.SubiOp, zero, step), step)
    stuck = builder.cmpi("eq", step, zero)
    size = builder.select(stuck, one, size)
    last = builder.binary(arith.SubiOp, builder.binary(arith.SubiOp, high, low), one)
    count = builder.binary(arith.DivUIOp, last, size)
    narrow = kind.primitive_bitwidth < 64
    if narrow:
        count = builder.cast(arith.ExtUIOp, count, i64)
    count = builder.binary(arith.AddiOp, count, builder.constant(1, i64))
    count = builder.select(builder.cmpi(less, low, high), count, builder.constant(0, i64))
    count = builder.select(stuck, builder.constant(0, i64), count)

    def value(counter: SSAValue) -> SSAValue:
        iteration = builder.cast(arith.TruncIOp, counter, step.type) if narrow else counter
        return builder.binary(arith.AddiOp, start, builder.binary(arith.MuliOp, iteration, step))

    return Iterations(kind, builder.constant(0, i64), count, builder.constant(1, i64), value)
