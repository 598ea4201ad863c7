"""Peel the first iteration of a loop if a branch in the loop asks for it.

    scf.for %i = %c0 to %c4096 step %c512 iter_args(%m = %zero) {
      %first = arith.cmpi eq, %i, %c0
      %n = scf.if %first { ... } else { ... %m ... }            what Inductor writes for a Welford reduction
      scf.yield %n
    }
becomes
    ... what the first iteration does ...
    scf.for %i = %c512 to %c4096 step %c512 iter_args(%m = ...) {
      ... the other side of the branch
    }

Folding does the rest (fold.py): in the first iteration the counter is a constant, and in the others its bounds decide
the condition. The loop then has no branch, and no copies that put the results of both sides into the same registers.

Not done here: loops that contain loops or products, whose code is long, and loops with unknown bounds, which may have
no first iteration.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft.base.remarks import NO_REMARKS, RemarkCollector, Unrolled
from weft.ir import Builder, find, int_value, span_of, tt, walk
from weft.ops.casts import INTEGER_PREDICATES

from .fold import int_of
from .unroll_loops import known_iterations


def peel_first_iterations(root: Operation, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite the loops inside `root`, inner ones first."""
    for loop in reversed(find(root, scf.ForOp)):
        if any(_asks_for_first(loop, op) for op in loop.body.block.ops) and not _is_long(loop):
            _peel(loop, remarks)


def is_decided_by_counter(loop: scf.ForOp, op: Operation) -> bool:
    """Whether an operation is a branch whose condition is unknown now, and decided by the number of the iteration."""
    if not isinstance(op, scf.IfOp):
        return False
    asked = op.operands[0].owner
    if not isinstance(asked, arith.CmpiOp):
        return int_of(op.operands[0]) is not None
    return asked.operands[0] is loop.body.block.args[0] and int_of(asked.operands[1]) is not None


def _asks_for_first(loop: scf.ForOp, op: Operation) -> bool:
    """Whether a branch asks whether the counter is, or is not, the number at which it begins."""
    iterations = known_iterations(loop)
    asked = op.operands[0].owner if is_decided_by_counter(loop, op) else None
    if iterations is None or iterations < 2 or not isinstance(asked, arith.CmpiOp):
        return False
    equality = INTEGER_PREDICATES[int_value(asked.properties["predicate"])] in ("eq", "ne")
    return equality and int_of(asked.operands[1]) == int_of(loop.operands[0])


def _is_long(loop: scf.ForOp) -> bool:
    return any(isinstance(op, scf.ForOp | scf.WhileOp | tt.DotOp | tt.DotScaledOp) for op in walk(loop.body.block))


def _peel(loop: scf.ForOp, remarks: RemarkCollector) -> None:
    """Write the first iteration before a loop, which begins at the second."""
    remarks.add(Unrolled(span_of(loop), "the first iteration of the loop", "a branch asks whether it is the first"))
    b = Builder.before(loop)
    body = loop.body.block
    first, end, step, *initial = loop.operands
    *ops, last = body.ops
    mapped: dict[SSAValue, SSAValue] = dict(zip(body.args, [first, *initial], strict=True))
    for op in ops:
        b.insert(op.clone(mapped))
    start, distance = int_of(first), int_of(step)
    assert start is not None and distance is not None, "the iterations are known"
    second = b.constant(start + distance, first.type)
    loop.operands = [second, end, step, *(mapped.get(x, x) for x in last.operands)]
