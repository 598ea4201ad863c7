"""Specialize loops of products in a branch, as after an early return: both kinds of warps execute the branch.

    scf.if %more {                                   ttg.warp_specialize(..., %more)
      ...                                            default {
      %r = ttg.warp_specialize(...)                    scf.if %more { ... what the kernel's own warps do ... }
      default { ... }                        becomes }
      partition0 { copies }                          partition0 {
      ... store %r                                     scf.if %given { copies }
    }                                                }

All warps of a block take the same side of the branch. So the kinds of warps part and meet exactly once in each program,
and the partitions need not be told how often (lower/nvidia/specialize.py); `explain` can follow the copying warp too.
Buffers, mbarriers, and the numbers from which that warp computes coordinates and bounds are computed before the branch.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.base import each_once
from weft.ir import Builder, i1, is_tensor
from weft.ir.gpu import ttg
from weft.ir.nvidia import ttng

from ..affine import is_outside
from ..effects import shareable
from ..removal import put_in_place, remove


def branch_around(op: Operation) -> scf.IfOp | None:
    """The outermost of the branches that an operation of a kernel stands in."""
    found: scf.IfOp | None = None
    at = op.parent_op()
    while isinstance(at, scf.IfOp):
        found, at = at, at.parent_op()
    return found


def are_made_before(values: Iterable[SSAValue], branch: scf.IfOp) -> bool:
    """Whether scalars are there before a branch, or can be: it computes them by arithmetic alone."""
    todo = list(values)
    for value in each_once(todo):
        if is_outside(value, branch):
            continue
        op = value.owner
        if not isinstance(op, Operation) or not shareable(op) or op.regions or is_tensor(value.type):
            return False
        todo += op.operands
    return True


def out_of_branches(special: ttg.WarpSpecializeOp) -> ttg.WarpSpecializeOp:
    """Have the warps part before the branches that a warp_specialize stands in."""
    while isinstance(branch := special.parent_op(), scf.IfOp):
        special = _out_of(special, branch)
    return special


def _out_of(special: ttg.WarpSpecializeOp, branch: scf.IfOp) -> ttg.WarpSpecializeOp:
    is_first = special.parent is branch.true_region.block
    for op in _needed(special, branch):
        op.detach()
        Builder.before(branch).insert(op)
    _guard(special, is_first)
    captured, properties = [*special.operands, branch.cond], special.properties
    whole, partitions = Block(), special.detach_region(special.regions[1])
    _join(special)
    uses = [(list(r.uses), r) for r in branch.results]
    types, regions = [r.type for r in branch.results], [Region(whole), partitions]
    new = Builder.before(branch).create(ttg.WarpSpecializeOp, captured, types, properties, regions=regions)
    for (those, old), result in zip(uses, new.results, strict=True):
        result.name_hint = old.name_hint
        for use in those:
            use.operation.operands[use.index] = result
    branch.detach()
    whole.add_op(branch)
    Builder.at_end(whole).create(ttg.WarpYieldOp, branch.results)
    assert isinstance(new, ttg.WarpSpecializeOp)
    return new


def _needed(special: ttg.WarpSpecializeOp, branch: scf.IfOp) -> list[Operation]:
    """The operations of a branch that make what its partition captures, and its mbarriers, in their order."""
    block = special.parent
    assert block is not None
    marks = [op for op in block.ops if isinstance(op, ttng.InitBarrierOp)]
    needed = set[Operation](marks)
    todo = [*special.operands, *(v for op in marks for v in op.operands)]
    for value in each_once(todo):
        op = value.owner
        if isinstance(op, Operation) and not is_outside(value, branch):
            needed.add(op)
            todo += op.operands
    return [op for op in block.ops if op in needed]


def _guard(special: ttg.WarpSpecializeOp, is_first: bool) -> None:
    """Let the partition do what it does only if it is given that the branch is taken."""
    holder = special.regions[1].block.first_op
    assert holder is not None
    block = holder.regions[0].block
    given = block.insert_arg(i1, len(block.args))
    *body, _ = block.ops
    guard = Builder.at_start(block, special.location).if_(given, ())
    taken, other = (guard.true_region, guard.false_region) if is_first else (guard.false_region, guard.true_region)
    for op in body:
        op.detach()
        taken.block.add_op(op)
    for region in (taken, other):
        Builder.at_end(region.block).yield_()


def _join(special: ttg.WarpSpecializeOp) -> None:
    """Put what the kernel's own warps do where the warps parted."""
    block = special.regions[0].block
    end = block.last_op
    assert isinstance(end, ttg.WarpYieldOp)
    values = list(end.operands)
    remove(end)
    put_in_place(special, block, values)
