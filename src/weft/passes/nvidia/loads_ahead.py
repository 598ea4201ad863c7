"""Numbers that an iteration multiplies its product by are loaded in the iteration before.

    scf.for %k ... {                                    %first = tt.load %scales + lower
      %scale = tt.load %scales + %k                     scf.for %k ... iter_args(%scale = %first) {
      wait for the operands of the product       becomes  %next = tt.load %scales + (%k + step)
      %d = ttng.warp_group_dot ...                        wait for the operands of the product
      %sum = %acc + %d * %scale                           %d = ttng.warp_group_dot ...
    }                                                     %sum = %acc + %d * %scale;  yield %next

An iteration of a specialised loop is as long as its product. Where the load stands as it is written, the assembler lets
the product wait for it, since what is computed of the loaded numbers alone comes before the product: an iteration then
takes as long as the memory and the product, one after the other.

Loaded ahead are numbers and rows of them whose addresses can be computed an iteration ahead (loop_slices.py); nothing
is loaded for an iteration that does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, is_tensor, shape_of, splat_value, tt

from ..loop_slices import is_there, slice_of
from ..removal import remove


def load_ahead(loop: scf.ForOp) -> scf.ForOp:
    """Let a loop without effects load its numbers an iteration ahead; the loop that takes its place."""
    body = loop.body.block
    loads = [op for op in body.ops if _is_of_numbers(op) and slice_of(loop, op.results) is not None]
    if not loads:
        return loop
    part = slice_of(loop, [r for op in loads for r in op.results])
    end = body.last_op
    assert part is not None and end is not None
    b = Builder.before(loop)
    starts = {i: loop.operands[3 + i] for i in part.carried}
    first, ahead = part.clone(b, loop.operands[0], starts, is_there(loop, b, 0))
    carried = [*(first[op.results[0]] for op in loads), *ahead.values()]
    given = [body.insert_arg(x.type, len(body.args)) for x in carried]
    near = Builder.before(next(iter(body.ops)))
    index = near.binary(arith.AddiOp, body.args[0], loop.operands[2])
    states = dict(zip(ahead, given[len(loads) :], strict=True))
    following, after = part.clone(near, index, states, is_there(loop, near, 1))
    handed_on = [*(following[op.results[0]] for op in loads), *after.values()]
    for op, value in zip(loads, given, strict=False):
        value.name_hint = op.results[0].name_hint
        op.results[0].replace_all_uses_with(value)
        remove(op)
    end.operands = [*end.operands, *handed_on]
    return carrying(loop, carried)


def _is_of_numbers(op: Operation) -> bool:
    """Whether an operation loads a number, or a row of them, as anybody may at any time."""
    if not isinstance(op, tt.LoadOp) or (is_tensor(op.result.type) and len(shape_of(op.result.type)) > 1):
        return False
    volatile = op.properties.get("isVolatile")
    return volatile is None or not splat_value(volatile)


def carrying(loop: scf.ForOp, values: Sequence[SSAValue]) -> scf.ForOp:
    """The loop with more values to carry, for which its body is prepared."""
    b = Builder.before(loop)
    region = loop.detach_region(loop.regions[0])
    types = [*(r.type for r in loop.results), *(x.type for x in values)]
    new = b.create(scf.ForOp, (*loop.operands, *values), types, loop.properties, loop.attributes, [region])
    new.location = loop.location
    for old, other in zip(loop.results, new.results, strict=False):
        other.name_hint = old.name_hint
        old.replace_all_uses_with(other)
    remove(loop)
    return new
