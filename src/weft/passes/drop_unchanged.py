"""Do not carry values through loops and branches that these do not change.

    %r:2 = scf.for %i = ... iter_args(%p = %base, %n = %zero) -> (!tt.ptr<f32>, i32) {
      ... uses %p ...
      scf.yield %p, %m
    }
becomes
    %r = scf.for %i = ... iter_args(%n = %zero) -> (i32) {
      ... uses %base ...
      scf.yield %m
    }

Likewise a result of `scf.if` that both branches yield from outside, what an `scf.while` only passes on, and what
nobody uses. Inner loops go first, so that what they leave alone can be seen to be left alone by the outer ones.
Not done here: values that change in a way that could be computed from the loop's counter.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from .removal import remade, remove


def drop_unchanged(root: Operation) -> None:
    """Rewrite every loop and branch inside `root`."""
    for region in root.regions:
        for block in region.blocks:
            for op in list(block.ops):
                if op.regions:
                    drop_unchanged(op)
                    if isinstance(op, scf.ForOp):
                        _for(op)
                    elif isinstance(op, scf.IfOp):
                        _if(op)
                    elif isinstance(op, scf.WhileOp):
                        _while(op)


def _outside(value: SSAValue, op: Operation) -> bool:
    """Is the value defined outside of `op`?"""
    owner = value.owner
    inner: Operation | Block | Region | None = owner if isinstance(owner, Block) else owner.parent
    while inner is not None:
        if inner is op:
            return False
        inner = inner.parent
    return owner is not op


def _remake(op: Operation, operands: Sequence[SSAValue], kept: Sequence[int]) -> None:
    """Replace `op` by one with these operands and only these of its results."""
    new = remade(op, operands, [op.results[i].type for i in kept])
    block = op.parent
    if block is None:
        return
    block.insert_op_before(new, op)
    for new_result, i in zip(new.results, kept, strict=True):
        new_result.name_hint = op.results[i].name_hint
        op.results[i].replace_all_uses_with(new_result)
    remove(op)


def _for(op: scf.ForOp) -> None:
    body = op.regions[0].block
    end = body.last_op
    if end is None:
        return
    init = op.operands[3:]
    carried = body.args[1:]
    yielded = list(end.operands)
    gone: set[int] = set()
    for i, (first, argument, value) in enumerate(zip(init, carried, yielded, strict=True)):
        if value is argument or value is first:
            argument.replace_all_uses_with(first)
            op.results[i].replace_all_uses_with(first)
            gone.add(i)
    # What only feeds itself: live are those used elsewhere, and those that a live one becomes.
    yielded = list(end.operands)
    live = {
        i
        for i, argument in enumerate(carried)
        if i not in gone and (op.results[i].first_use is not None or any(u.operation is not end for u in argument.uses))
    }
    index = {argument: i for i, argument in enumerate(carried)}
    work = list(live)
    while work:
        source = index.get(yielded[work.pop()])  # type: ignore[call-overload]
        if source is not None and source not in live and source not in gone:
            live.add(source)
            work.append(source)
    kept = sorted(live)
    if len(kept) == len(carried):
        return
    end.operands = [yielded[i] for i in kept]
    for i in reversed(range(len(carried))):
        if i not in live:
            body.erase_arg(carried[i], safe_erase=False)
    _remake(op, [*op.operands[:3], *(init[i] for i in kept)], kept)


def _if(op: scf.IfOp) -> None:
    if not op.results or any(len(region.blocks) != 1 for region in op.regions):
        return
    ends = [region.block.last_op for region in op.regions]
    if ends[0] is None or ends[1] is None:
        return
    then, other = list(ends[0].operands), list(ends[1].operands)
    kept: list[int] = []
    for i, result in enumerate(op.results):
        if then[i] is other[i] and _outside(then[i], op):
            result.replace_all_uses_with(then[i])
        elif result.first_use is not None:
            kept.append(i)
    if len(kept) == len(op.results):
        return
    ends[0].operands = [then[i] for i in kept]
    ends[1].operands = [other[i] for i in kept]
    _remake(op, op.operands, kept)


def _while(op: scf.WhileOp) -> None:
    before, after = op.regions[0].block, op.regions[1].block
    condition, end = before.last_op, after.last_op
    if not isinstance(condition, scf.ConditionOp) or not isinstance(end, scf.YieldOp):
        return
    init = list(op.operands)
    passed = list(condition.operands)[1:]
    place = {argument: j for j, argument in enumerate(after.args)}
    gone_before: set[int] = set()
    for i, (first, argument, value) in enumerate(zip(init, list(before.args), list(end.operands), strict=True)):
        j = place.get(value)  # type: ignore[call-overload]
        source = passed[j] if j is not None else value
        if source is argument or source is first:
            argument.replace_all_uses_with(first)
            gone_before.add(i)
    passed = list(condition.operands)[1:]
    gone_after: set[int] = set()
    for j, value in enumerate(passed):
        if _outside(value, op):
            after.args[j].replace_all_uses_with(value)
            op.results[j].replace_all_uses_with(value)
            gone_after.add(j)
    if not gone_before and not gone_after:
        return
    end.operands = [v for i, v in enumerate(end.operands) if i not in gone_before]
    for j, argument in enumerate(list(after.args)):
        if j not in gone_after and argument.first_use is None and op.results[j].first_use is None:
            gone_after.add(j)
    condition.operands = [condition.operands[0], *(v for j, v in enumerate(passed) if j not in gone_after)]
    for i in sorted(gone_before, reverse=True):
        before.erase_arg(before.args[i], safe_erase=False)
    for j in sorted(gone_after, reverse=True):
        after.erase_arg(after.args[j], safe_erase=False)
    kept = [j for j in range(len(op.results)) if j not in gone_after]
    _remake(op, [v for i, v in enumerate(init) if i not in gone_before], kept)
