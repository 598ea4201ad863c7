"""Unroll loops by the factor that the kernel asks for, with a second loop for the remaining iterations.

    %s = scf.for %i = %a to %b step %c iter_args(%x = %init) {
      scf.yield %t(%i, %x)
    } {tt.loop_unroll_factor = 2}
becomes, where n is the number of iterations,
    %m = %a + (n - n mod 2) * %c
    %r = scf.for %i = %a to %m step 2 * %c iter_args(%x = %init) {
      scf.yield %t(%i + %c, %t(%i, %x))
    }
    %s = scf.for %i = %m to %b step %c iter_args(%x = %r) {
      scf.yield %t(%i, %x)
    } {tt.num_stages = 1}

The second loop is left out if it is known to have no iteration, and becomes straight-line code if it is known to have
one. It is too short to be pipelined.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from weft.base import CompilationError
from weft.base.remarks import NO_REMARKS, RemarkCollector, Unrolled
from weft.ir import Builder, find, i32_attr, span_of, walk

from .fold import int_of
from .removal import put_in_place
from .single_iterations import enter_known_loop

FACTOR = "tt.loop_unroll_factor"
MAX_OPERATIONS = 1_000_000
"""How many operations a loop may grow to."""


def unroll_loops(root: Operation, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Unroll the loops inside `root` that say by how much, inner ones first."""
    for op in reversed(find(root, scf.ForOp)):
        factor = op.attributes.get(FACTOR)
        if isinstance(factor, IntegerAttr) and factor.value.data > 1:
            op.attributes[FACTOR] = i32_attr(1)  # so that nobody unrolls it further
            _unroll(op, factor.value.data, remarks)


def _unroll(rest: scf.ForOp, factor: int, remarks: RemarkCollector) -> None:
    iterations = known_iterations(rest)
    if iterations is not None and iterations < factor:
        remarks.add(Unrolled(span_of(rest), "not the loop", f"it has {iterations} iterations, fewer than {factor}"))
        return
    left = "those that are left" if iterations is None else str(iterations % factor)
    why = f"{factor} iterations at a time, as loop_unroll_factor asks"
    remarks.add(Unrolled(span_of(rest), "the loop", why if left == "0" else f"{why}; {left} one at a time"))
    if factor * sum(1 for _ in walk(rest)) > MAX_OPERATIONS:
        raise CompilationError(
            f"unrolled by {factor}, this loop has more than {MAX_OPERATIONS} operations",
            span_of(rest),
            hint="make loop_unroll_factor smaller",
        )
    b = Builder.before(rest)
    upper, step = rest.operands[1:3]
    middle = _middle(b, rest, factor) if iterations is None or iterations % factor else upper
    stride = _times(b, step, factor)
    many = rest.clone()
    many.operands = [many.operands[0], middle, stride, *many.operands[3:]]
    b.insert(many)
    _repeat(many, step, factor)
    if middle is upper:
        put_in_place(rest, None, many.results)
        return
    rest.operands = [middle, upper, step, *many.results]
    rest.attributes["tt.num_stages"] = i32_attr(1)
    enter_known_loop(rest)


def _times(b: Builder, step: SSAValue, factor: int) -> SSAValue:
    number = int_of(step)
    if number is not None:
        return b.constant(number * factor, step.type)
    return b.binary(arith.MuliOp, step, b.constant(factor, step.type))


def known_iterations(loop: scf.ForOp) -> int | None:
    """How many iterations a loop has, where its bounds are constants."""
    lower, upper, step = (int_of(bound) for bound in loop.operands[:3])
    if lower is None or upper is None or step is None or step <= 0 or "unsignedCmp" in loop.properties:
        return None
    return len(range(lower, upper, step))


def _middle(b: Builder, loop: scf.ForOp, factor: int) -> SSAValue:
    """Where the iterations begin that are left."""
    lower, upper, step = loop.operands[:3]
    total, start, distance = known_iterations(loop), int_of(lower), int_of(step)
    if total is not None and start is not None and distance is not None:
        return b.constant(start + (total - total % factor) * distance, lower.type)
    one = b.constant(1, lower.type)
    last = b.binary(arith.SubiOp, b.binary(arith.SubiOp, upper, lower), one)
    count = b.binary(arith.AddiOp, b.binary(arith.DivUIOp, last, step), one)
    less = "ult" if "unsignedCmp" in loop.properties else "slt"
    iterations = b.select(b.cmpi(less, lower, upper), count, b.constant(0, lower.type))
    whole = b.binary(arith.SubiOp, iterations, b.binary(arith.RemUIOp, iterations, b.constant(factor, lower.type)))
    return b.binary(arith.AddiOp, lower, b.binary(arith.MuliOp, whole, step))


def _repeat(loop: scf.ForOp, step: SSAValue, factor: int) -> None:
    """Have a loop's body do in each iteration what it did in so many."""
    body = loop.regions[0].block
    *ops, end = body.ops
    b = Builder.before(end)
    index: SSAValue = body.args[0]
    results = list(end.operands)
    values = list(results)
    for _ in range(1, factor):
        index = b.binary(arith.AddiOp, index, step)
        mapped: dict[SSAValue, SSAValue] = dict(zip(body.args, [index, *values], strict=True))
        for op in ops:
            b.insert(op.clone(mapped))
        values = [mapped.get(value, value) for value in results]
    end.operands = values
