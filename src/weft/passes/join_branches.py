"""Join consecutive branches on the same condition.

    %p, %s = scf.if %c -> (tensor<64x64xf32>, f32) {       %s, %d = scf.if %c -> (f32, tensor<64x64xf32>) {
      scf.yield %p0, %s0                                     %d0 = ... %p0
    } else {                                                 scf.yield %s0, %d0
      scf.yield %p1, %s1                        becomes    } else {
    }                                                        scf.yield %s1, %zero
    %d = scf.if %c -> (tensor<64x64xf32>) {                }
      %d0 = ... %p
      scf.yield %d0
    } else {
      scf.yield %zero
    }

So are branches on a condition and on its negation. What one hands to the other is held in registers in between, and
made on the side, too, where nobody wants it: a function that says whether its caller is to go on gives such branches.
What is between them must have no effect and not use what the first gives.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from .effects import shareable
from .fold import int_of
from .removal import remove


def join_branches(root: Operation) -> None:
    """Rewrite the branches inside `root`, outer ones first."""
    for region in root.regions:
        for block in region.blocks:
            op = block.first_op
            while op is not None:
                following = _following(op) if isinstance(op, scf.IfOp) else None
                if following is not None and isinstance(op, scf.IfOp):
                    op = _join(op, *following)
                else:
                    join_branches(op)
                    op = op.next_op


def _following(first: scf.IfOp) -> tuple[scf.IfOp, bool] | None:
    """The next branch on the same condition, and whether it is the negation."""
    op = first.next_op
    while op is not None:
        if isinstance(op, scf.IfOp):
            negated = _is_negated(first.operands[0], op.operands[0])
            return None if negated is None else (op, negated)
        if not shareable(op) or any(x.owner is first for x in op.operands):
            return None
        op = op.next_op
    return None


def _is_negated(condition: SSAValue, other: SSAValue) -> bool | None:
    """Whether a condition is the negation of another one; None where it is something else."""
    if condition is other:
        return False
    for a, b in ((condition, other), (other, condition)):
        op = b.owner
        if isinstance(op, arith.XOrIOp) and a in op.operands:
            rest = op.operands[1] if op.operands[0] is a else op.operands[0]
            if int_of(rest) == -1:
                return True
    return None


def _join(first: scf.IfOp, second: scf.IfOp, negated: bool) -> scf.IfOp:
    """One branch where the second was."""
    types = [r.type for r in (*first.results, *second.results)]
    others = [second.regions[i] for i in ((1, 0) if negated else (0, 1))]
    regions = [_joined(first, region, other) for region, other in zip(first.regions, others, strict=True)]
    joined = scf.IfOp.create(
        operands=[first.operands[0]], result_types=types, regions=regions, location=second.location
    )
    parent = second.parent
    assert parent is not None
    parent.insert_op_before(joined, second)
    for old, new in zip((*first.results, *second.results), joined.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    remove(second)
    remove(first)
    return joined


def _joined(first: scf.IfOp, first_region: Region, other: Region) -> Region:
    """One side: what the first does, then what the second does with it; what both yield."""
    block, values = Block(), list[SSAValue]()
    for region in (first_region, other):
        handed = list(values)
        for op in list(region.block.ops) if region.blocks else ():
            op.detach()
            if isinstance(op, scf.YieldOp):
                values += op.operands
                op.erase()
            else:
                block.add_op(op)
        if region is other:
            _replace(first, handed, block, values)
    block.add_op(scf.YieldOp(*values))
    return Region(block)


def _replace(first: scf.IfOp, handed: list[SSAValue], block: Block, values: list[SSAValue]) -> None:
    """On this side the results of the first branch are what it hands on here."""
    for result, value in zip(first.results, handed, strict=True):
        result.replace_uses_with_if(value, lambda use: block.is_ancestor(use.operation))
        values[:] = [value if x is result else x for x in values]
