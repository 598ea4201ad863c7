"""Load the numbers by which a loop scales its products one iteration ahead.

    scf.for %k ... {                                    %first = tt.load %scales + lower
      %scale = tt.load %scales + %k                     scf.for %k ... iter_args(%scale = %first) {
      wait for the operands of the product       becomes  %next = tt.load %scales + (%k + step)
      %d = ttng.warp_group_dot ...                        wait for the operands of the product
      %sum = %acc + %d * %scale                           %d = ttng.warp_group_dot ...
    }                                                     %sum = %acc + %d * %scale;  yield %next

An iteration of a specialized loop should take as long as its product. But the assembler places operations on the loaded
numbers alone before the product, so the product waits for the load: an iteration then takes as long as memory and the
product, one after the other.

This is done for numbers and rows of them whose addresses can be computed an iteration ahead (loop_slices.py). Nothing
is loaded for an iteration that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import SSAValue

from weft.ir import Builder, tt

from ..loop_slices import Slice, is_lookup, is_there, masked_load, slice_of
from ..removal import remove


def load_ahead(loop: scf.ForOp) -> scf.ForOp:
    """Let a loop without effects load its numbers an iteration ahead; the loop that takes its place."""
    loads = [op for op in loop.body.block.ops if is_lookup(op) and slice_of(loop, op.results) is not None]
    return begun_ahead(loop, loads) if loads else loop


def begun_ahead(loop: scf.ForOp, loads: Sequence[tt.LoadOp]) -> scf.ForOp:
    """The loop with these loads done an iteration ahead, whose operands can be computed then (`slice_of`)."""
    body = loop.body.block
    part = slice_of(loop, [x for op in loads for x in op.operands])
    end = body.last_op
    assert part is not None and end is not None, "the operands of each load can be computed ahead"
    before, near = Builder.before(loop), Builder.before(next(iter(body.ops)))
    starts = {i: loop.operands[3 + i] for i in part.carried}
    first, ahead = _loaded(before, loads, part, loop.operands[0], starts, is_there(loop, before, 0))
    carried = [*first, *ahead.values()]
    given = [body.insert_arg(x.type, len(body.args)) for x in carried]
    index = near.binary(arith.AddiOp, body.args[0], loop.operands[2])
    states = dict(zip(ahead, given[len(loads) :], strict=True))
    following, after = _loaded(near, loads, part, index, states, is_there(loop, near, 1))
    for op, value in zip(loads, given, strict=False):
        value.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(value)
        remove(op)
    end.operands = [*end.operands, *following, *after.values()]
    return _carrying(loop, carried)


def _loaded(
    b: Builder,
    loads: Sequence[tt.LoadOp],
    part: Slice,
    index: SSAValue,
    states: Mapping[int, SSAValue],
    exists: SSAValue,
) -> tuple[list[SSAValue], dict[int, SSAValue]]:
    """(what the loads of an iteration give, the carried values of the iteration after it)."""
    clones, after = part.clone(b, index, states, exists)
    for op in loads:
        if op.result not in clones:  # else another load looks something up with it
            load = masked_load(b, op, [clones.get(x, x) for x in op.operands], exists)
            load.location, load.results[0].name_hint = op.location, op.result.name_hint
            clones[op.result] = load.results[0]
    return [clones[op.result] for op in loads], after


def _carrying(loop: scf.ForOp, values: Sequence[SSAValue]) -> scf.ForOp:
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
