"""Peel the last iteration of a loop if it is the only one that needs a mask.

    scf.for %i = %c0 to %c50257 step %c2048 iter_args(%a = %zero) {
      %column = arith.addi %i, %range                       0 to 2,047
      %mask = arith.cmpi slt, %column, %c50257
      %x = tt.load %row[%column], %mask
      ...
    }
becomes
    scf.for %i = %c0 to %c49152 step %c2048 iter_args(%a = %zero) {
      ... %mask is true
    }
    ... what the last iteration does, with %i = %c49152 and the mask

Folding does the rest (fold.py): the bounds of the counter decide the comparison. Each element of the other iterations
then needs no comparison, no predicate, no zero that replaces what is not loaded, and no select of the loop-carried
value. Loads at constant distances share one address, and LLVM unrolls the loop. A group norm of Inductor has 33
instructions for each iteration instead of 52.

Not done here: loops that wait for all warps, loops with products, whose loads are begun iterations ahead, and loops
with unknown bounds, which may have no whole iteration.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation

from weft.analysis import IntegerBounds
from weft.base.remarks import NO_REMARKS, RemarkCollector, Unrolled
from weft.ir import Builder, bit_width, find, int_value, span_of, tt, walk
from weft.ops.casts import INTEGER_PREDICATES

from .fold import decided, int_of
from .removal import remove
from .short_loops import MOST_INSTRUCTIONS, instructions_of
from .single_iterations import enter_known_loop
from .unroll_loops import known_iterations


def peel_last_iterations(root: Operation, threads: int, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite the loops inside `root` that blocks of so many threads may have twice, inner ones first."""
    for loop in reversed(find(root, scf.ForOp)):
        iterations, start, step = known_iterations(loop), int_of(loop.operands[0]), int_of(loop.operands[2])
        if iterations is None or start is None or step is None or iterations < 3 or not _may_be_twice(loop, threads):
            continue
        last = start + (iterations - 1) * step
        if _masks_end(loop, last):
            _peel(loop, last, remarks)


def _may_be_twice(loop: scf.ForOp, threads: int) -> bool:
    """Whether its code is short, and nothing in it waits for other warps."""
    ops = list(walk(loop.body.block))
    meets = (scf.ForOp, scf.WhileOp, tt.DotOp, tt.DotScaledOp, tt.ReduceOp, tt.ScanOp)
    return not any(isinstance(op, meets) for op in ops) and _length(ops, threads) <= MOST_INSTRUCTIONS


def _length(ops: list[Operation], threads: int) -> int:
    return sum(instructions_of(op, threads) for op in ops)


def _masks_end(loop: scf.ForOp, last: int) -> bool:
    """Whether ending a loop before its last iteration decides a comparison that is undecided now."""
    comparisons = [op for op in loop.body.block.ops if isinstance(op, arith.CmpiOp)]
    unknown = [op for op in comparisons if _outcome(op, IntegerBounds()) is None]
    if not unknown:
        return False
    end = loop.operands[1]
    shorter = Builder.before(loop).constant(last, end.type)
    loop.operands[1] = shorter
    bounds = IntegerBounds()
    masks = any(_outcome(op, bounds) is not None for op in unknown)
    loop.operands[1] = end
    assert isinstance(shorter.owner, Operation)
    remove(shorter.owner)
    return masks


def _outcome(op: arith.CmpiOp, bounds: IntegerBounds) -> bool | None:
    x, y = op.operands
    predicate = INTEGER_PREDICATES[int_value(op.properties["predicate"])]
    return decided(predicate, bounds.of(x), bounds.of(y), bit_width(x.type))


def _peel(loop: scf.ForOp, last: int, remarks: RemarkCollector) -> None:
    """Write the last iteration behind a loop, which ends before it."""
    remarks.add(Unrolled(span_of(loop), "the last iteration of the loop", "only it needs a mask"))
    b = Builder.before(loop)
    first, end, step, *_ = loop.operands
    whole = loop.clone()
    whole.operands = [first, b.constant(last, end.type), step, *whole.operands[3:]]
    b.insert(whole)
    loop.operands = [whole.operands[1], end, step, *whole.results]
    enter_known_loop(loop)
