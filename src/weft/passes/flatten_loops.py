"""Merge two nested loops around a product into one, so that its loads are pipelined across outer iterations too.

    %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %zero) {
      %p = ... %i
      %r = scf.for %j = %c0 to %c128 step %c64 iter_args(%b = %a) {
        %d = ... %p, %j, %b
        scf.yield %d
      }
      scf.yield %r
    }
becomes
    %s = scf.for %t = %c0 to %c18 step %c1 iter_args(%b = %zero) {
      %i = %t / 2
      %j = %t % 2 * 64
      %p = ... %i
      %d = ... %p, %j, %b
      scf.yield %d
    }

A convolution is such a nest: a loop over the taps of its filter, and one over the channels. The copies of a pipelined
loop are begun some iterations ahead, but not across its end: each time the inner loop begins, it waits for memory.

A nest is flattened if its numbers of iterations are known, the outer loop carries what the inner loop carries and only
computes addresses and masks, and the inner loop multiplies what it loads. Addresses and masks are then computed in each
iteration, so the inner loop must be short. The order of sums does not change.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft import ir
from weft.base.remarks import NO_REMARKS, RemarkCollector, Unrolled
from weft.ir import Builder, find, span_of

from .effects import shareable
from .fold import int_of
from .removal import put_in_place
from .short_loops import instructions_of
from .unroll_loops import FACTOR, known_iterations

MOST_REPEATED = 512
"""Instructions of a thread for what all iterations of the inner loop compute again: they take about as long as the
first copies of a loop take to arrive."""

MOST_ITERATIONS = (1 << 31) - 1
"""Their number is one of 32 bits."""


def flatten_loops(root: Operation, threads: int, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Flatten the nests of loops inside `root` that would wait for their loads, for blocks of so many threads."""
    for inner in reversed(find(root, scf.ForOp)):
        while isinstance(outer := inner.parent_op(), scf.ForOp) and _is_nest(outer, inner, threads):
            _flatten(outer, inner, remarks)


def _is_nest(outer: scf.ForOp, inner: scf.ForOp, threads: int) -> bool:
    """Whether flattening the two is possible, and pays."""
    *before, last, end = outer.regions[0].block.ops
    turns, iterations = known_iterations(outer), known_iterations(inner)
    if last is not inner or turns is None or turns < 2 or iterations is None or iterations < 2:
        return False
    if turns * iterations > MOST_ITERATIONS:
        return False
    carried = list(outer.regions[0].block.args[1:])
    if list(inner.operands[3:]) != carried or list(end.operands) != list(inner.results):
        return False
    if outer.regions[0].block.args[0].type != inner.regions[0].block.args[0].type:
        return False
    if any(argument.uses.get_length() != 1 for argument in carried):
        return False  # what the outer loop does depends on the sums so far
    if FACTOR in outer.attributes or FACTOR in inner.attributes:
        return False  # their author says how many iterations are done at a time
    if not all(shareable(op) for op in before):
        return False
    kinds = {type(op) for op in inner.regions[0].block.ops}
    if not kinds & {ir.tt.DotOp, ir.tt.DotScaledOp} or not kinds & {ir.tt.LoadOp, ir.tt.DescriptorLoadOp}:
        return False
    return iterations * sum(instructions_of(op, threads) for op in before) <= MOST_REPEATED


def _flatten(outer: scf.ForOp, inner: scf.ForOp, remarks: RemarkCollector) -> None:
    turns, iterations = known_iterations(outer), known_iterations(inner)
    assert turns is not None and iterations is not None, "the numbers of iterations are known"
    why = f"and the loop around it are one loop of {turns} times {iterations} iterations, so that its loads go on"
    remarks.add(Unrolled(span_of(inner), "the loop", why))
    body, outside = inner.regions[0].block, Builder.before(outer)
    index = body.insert_arg(body.args[0].type, 0)
    b = Builder.at_start(body, inner.location)
    count = b.constant(iterations, index.type)
    turn, iteration = b.binary(arith.DivUIOp, index, count), b.binary(arith.RemUIOp, index, count)
    changing = {_replace_index(b, outer, turn), _replace_index(b, inner, iteration)}
    for op in list(outer.regions[0].block.ops):
        if op is inner:
            break
        op.detach()
        changes = any(operand in changing for operand in op.operands)
        (b if changes else outside).insert(op)
        if changes:
            changing |= set(op.results)
    body.erase_arg(body.args[1])
    bounds = [outside.constant(bound, index.type) for bound in (0, turns * iterations, 1)]
    inner.operands = [*bounds, *outer.operands[3:]]
    put_in_place(outer, outer.regions[0].block)


def _replace_index(b: Builder, loop: scf.ForOp, iteration: SSAValue) -> SSAValue:
    """Compute a loop's index from the number of its iteration, and have it used instead of the loop's own."""
    start, step = int_of(loop.operands[0]), int_of(loop.operands[2])
    assert start is not None and step is not None, "the number of iterations is known"
    place = b.binary(arith.MuliOp, iteration, b.constant(step, iteration.type))
    place = b.binary(arith.AddiOp, place, b.constant(start, iteration.type))
    loop.regions[0].block.args[-1 - len(loop.results)].replace_all_uses_with(place)
    return place
