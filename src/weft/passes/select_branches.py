"""Replace branches that only choose between a few scalars by selects.

    %b = scf.if %c -> (i32) {                              %0 = arith.subi %last, %a : i32
      %0 = arith.subi %last, %a : i32                      %b = arith.select %c, %0, %a : i32
      scf.yield %0 : i32
    } else {                                  becomes
      scf.yield %a : i32
    }

Both sides are then computed, which costs less than a branch, and analyses of the scalar see only arithmetic: the warp
that copies for the others can compute such coordinates itself (nvidia/producers.py).
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation

from weft.ir import is_float

from .effects import shareable
from .fold import int_of
from .removal import put_in_place

OPERATIONS = 8
"""The most operations of both sides: branches with more stay."""
DIVISIONS = ("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")


def select_branches(root: Operation) -> None:
    """Rewrite the branches inside `root`, inner ones first."""
    for region in root.regions:
        for block in region.blocks:
            for op in list(block.ops):
                select_branches(op)
                if isinstance(op, scf.IfOp) and _chooses(op):
                    _select(op)


def _chooses(branch: scf.IfOp) -> bool:
    """Whether a branch gives scalars, and both sides can be computed whatever the condition is."""
    if not branch.results or not all(isinstance(r.type, IntegerType) or is_float(r.type) for r in branch.results):
        return False
    ops = [op for region in branch.regions for op in region.block.ops if not isinstance(op, scf.YieldOp)]
    return len(ops) <= OPERATIONS and all(_may_be_computed(op) for op in ops)


def _may_be_computed(op: Operation) -> bool:
    """Whether an operation on scalars has a result, or at least does no harm, whatever its operands are."""
    if not op.name.startswith("arith.") or not shareable(op):
        return False
    if not all(isinstance(x.type, IntegerType) or is_float(x.type) for x in (*op.operands, *op.results)):
        return False
    return op.name not in DIVISIONS or int_of(op.operands[1]) not in (None, 0, -1)


def _select(branch: scf.IfOp) -> None:
    """Compute both sides before the branch, and choose."""
    condition, names = branch.operands[0], [r.name_hint for r in branch.results]
    block = branch.parent
    assert block is not None
    sides = []
    for region in branch.regions:
        for op in list(region.block.ops):
            if isinstance(op, scf.YieldOp):
                sides.append(list(op.operands))
            else:
                op.detach()
                block.insert_op_before(op, branch)
    chosen = [arith.SelectOp(condition, a, b) for a, b in zip(*sides, strict=True)]
    for op, name in zip(chosen, names, strict=True):
        op.location = branch.location
        op.results[0].name_hint = name
        block.insert_op_before(op, branch)
    put_in_place(branch, None, [op.results[0] for op in chosen])
