"""Replace loops that are known to have one iteration, or none, by their body or nothing.

    %s = scf.for %i = %c0 to %c32 step %c64 iter_args(%a = %init) -> (tensor<32xf32>) {
      %t = ... %i, %a
      scf.yield %t
    }
becomes
    %t = ... %c0, %init                  and %t wherever %s was; of a loop without iterations, %init

Kernels have such loops where a constexpr bound is no larger than a block. What is there for many iterations, copies
that are begun iterations ahead and sums that cross lanes after the last, only takes memory and time with one.
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation

from weft.base.remarks import NO_REMARKS, RemarkCollector, Unrolled
from weft.ir import find, span_of

from .fold import int_of
from .removal import put_in_place


def enter_known_loops(root: Operation, remarks: RemarkCollector = NO_REMARKS) -> None:
    """Rewrite the loops inside `root` whose bounds are constants, inner ones first."""
    for op in reversed(find(root, scf.ForOp)):
        enter_known_loop(op, remarks)


def enter_known_loop(op: scf.ForOp, remarks: RemarkCollector = NO_REMARKS) -> bool:
    """Put the one iteration of a loop in its place, or its initial values. True if the loop is gone."""
    first, end, step = (int_of(bound) for bound in op.operands[:3])
    parent, body = op.parent, op.regions[0].block
    if first is None or end is None or step is None or step <= 0 or parent is None or "unsignedCmp" in op.properties:
        return False
    if first < end:
        if first + step < end:
            return False
        for argument, value in zip(list(body.args), (op.operands[0], *op.operands[3:]), strict=True):
            argument.replace_all_uses_with(value)
    if first < end:
        remarks.add(Unrolled(span_of(op), "the loop", "it has one iteration, which stands in its place"))
    put_in_place(op, body if first < end else None, list(op.operands[3:]))
    return True
