"""Specialize the warps of several consecutive loops of products together, such as the two of causal attention.

    scf.for ... { products of %k and %v }            whole blocks of keys
    %more = ...
    scf.for ... { products of %k and %v, a mask }    the block on the diagonal

The second loop continues with the buffers of the first if it loads tiles of the same types for the same products, so
its first tiles are copied while the first loop still runs. The warps that multiply execute the operations between the
two. Only scalars from which coordinates and bounds of the second loop are computed move before the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from weft.ir import is_tensor, tt
from weft.ir.gpu import ttg
from weft.ir.gpu.products import OperandFenceOp
from weft.machines import Machine

from ..effects import shareable
from .specialized_loops import Plan, is_asked, planned


def sequence(loop: scf.ForOp, plan: Plan, stages: int, machine: Machine) -> list[tuple[scf.ForOp, Plan]]:
    """A loop and those behind it that go on with its buffers, each with its plan; they all have as many buffers."""
    found = [(loop, plan)]
    while plan.tiles is None:
        last = found[-1][0]
        after = _next(last)
        if after is None or is_asked(after) != is_asked(loop):
            break
        other = planned(after, stages, machine)
        if isinstance(other, str) or other.tiles is not None or not _alike(plan, other):
            break
        if not all(_is_there(x, loop) for x in scalars_of(after, other)):
            break
        found.append((after, other))
    count = min(p.count for _, p in found)
    return [(each, replace(p, count=count)) for each, p in found]


def scalars_of(loop: scf.ForOp, plan: Plan) -> list[SSAValue]:
    """What the warp that copies computes coordinates and bounds of, from before the loop."""
    bulks = [bulk for group in plan.groups for bulk in group.loads]
    found = dict.fromkeys([*loop.operands[:3], *(v for x in bulks for total in x.at for v in total.scalars)])
    for value in list(found):
        owner = value.owner
        if isinstance(owner, Operation) and loop.is_ancestor(owner):  # computed in the loop, of what is outside
            found.update(dict.fromkeys(_outside(owner, loop)))
            del found[value]
    return [v for v in found if not (isinstance(v.owner, Block) and v.owner.parent_op() is loop)]


def move_before(values: Sequence[SSAValue], loop: scf.ForOp) -> None:
    """Have scalars that are computed behind a loop computed before it."""
    for value in values:
        op = value.owner
        if isinstance(op, Operation) and op.parent is loop.parent and not _precedes(op, loop):
            move_before(list(op.operands), loop)
            op.detach()
            assert loop.parent is not None
            loop.parent.insert_op_before(op, loop)


def _outside(op: Operation, loop: scf.ForOp) -> list[SSAValue]:
    found: list[SSAValue] = []
    for value in op.operands:
        owner = value.owner
        if isinstance(owner, Operation) and loop.is_ancestor(owner):
            found += _outside(owner, loop)
        elif not (isinstance(owner, Block) and owner.parent_op() is loop):
            found.append(value)
    return found


def _next(loop: scf.ForOp) -> scf.ForOp | None:
    """The loop behind a loop, if the warps that multiply can do all between the two."""
    op = loop.next_op
    while op is not None and not isinstance(op, scf.ForOp):
        if not (shareable(op) or isinstance(op, tt.LoadOp | tt.ReduceOp | ttg.LocalAllocOp | OperandFenceOp)):
            return None
        op = op.next_op
    return op


def _alike(plan: Plan, other: Plan) -> bool:
    """Whether loops have tiles of the same types copied for the same products, by as many warps."""
    if plan.warps != other.warps or len(plan.groups) != len(other.groups):
        return False
    if [len(row.products) for row in plan.rows] != [len(row.products) for row in other.rows]:
        return False
    return all(
        (a.first, a.last) == (b.first, b.last) and [x.memory(1) for x in a.loads] == [x.memory(1) for x in b.loads]
        for a, b in zip(plan.groups, other.groups, strict=True)
    )


def _is_there(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a scalar is computed before a loop, or can be, though it stands behind it."""
    op = value.owner
    if isinstance(op, Block) or op.parent is not loop.parent or _precedes(op, loop):
        return True
    return shareable(op) and not is_tensor(value.type) and all(_is_there(x, loop) for x in op.operands)


def _precedes(op: Operation, loop: scf.ForOp) -> bool:
    """Whether an operation of the block of a loop stands before it."""
    at: Operation | None = loop
    while at is not None:
        if at is op:
            return at is not loop
        at = at.prev_op
    return False
