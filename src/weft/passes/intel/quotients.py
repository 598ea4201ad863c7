"""Hoist loop-invariant divisions out of loops, such as the rows and columns of tiles in persistent kernels.

    scf.for %k = %low to %high {              %runs = %low < %high
      %row = %tile / %columns          ->     %row = %tile / (%runs ? %columns : 1)
      ... [%row * 64, 32 * %k]                scf.for %k = %low to %high { ... [%row * 64, 32 * %k]

Other operations have been hoisted already, for every target. A division has not, because its divisor may be 0 if the
loop has no iteration; in that case, the hoisted division has the divisor 1.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, is_int

from ..affine import is_outside

DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)


def divide_before(loop: scf.ForOp) -> None:
    """Move divisions, and what is made of their results, to where the loop begins."""
    if "unsignedCmp" in loop.properties:
        return
    b = Builder.before(loop)
    runs: SSAValue | None = None
    for op in list(loop.body.block.ops):
        if not _is_scalar(op) or not all(is_outside(v, loop) for v in op.operands):
            continue
        b.loc = op.location
        if isinstance(op, DIVISIONS):
            runs = b.cmpi("slt", loop.operands[0], loop.operands[1]) if runs is None else runs
            op.operands[1] = b.select(runs, op.operands[1], b.constant(1, op.operands[1].type))
        op.detach()
        b.insert(op)


def _is_scalar(op: Operation) -> bool:
    """Whether an operation computes an integer that is no tile's."""
    return op.name.startswith("arith.") and all(is_int(r.type) for r in op.results)
