"""Long chains of branches are cut, so that IR is no deeper than the kernel's meaning.

A chain of `elif` is an `if` in the other branch of an `if`, and so on: 1,500 branches would be IR nested 1,500 deep.
So are 1,500 early returns, one after the other. Where a chain is longer than `LONGEST`, what comes after is put behind
it, and runs where the first part has found nothing:

    %r = scf.if %c0 {                        %r0, %found = scf.if %c0 {
      yield %a                                 yield %a, true
    } else {                                 } else {
      %c1 = ...                                yield poison, false
      %s = scf.if %c1 { ... }    becomes     }
      yield %s                               %r = scf.if %found {
    }                                          yield %r0
                                             } else {
                                               %c1 = ...
                                               %s = scf.if %c1 { ... }
                                               yield %s
                                             }

Nothing is computed that was not before, and nothing twice. Ifs nested by indentation are no deeper than Python takes
them, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import SSAValues

from weft.ir import Builder, find, i1

from .returns import poison

LONGEST: Final = 100
"""How many branches of a chain may be within each other: Python takes no more levels of indentation."""


class _Link(NamedTuple):
    """An `if` of a chain and the region of it in which the chain goes on."""

    op: scf.IfOp
    side: int


def cut_chains(entry: Block) -> None:
    """Cut the long chains in a block and in all that is nested in it."""
    if len(find(entry, scf.IfOp)) <= LONGEST:
        return
    blocks: list[tuple[Block, list[_Link]]] = [(entry, [])]
    while blocks:
        block, chain = blocks.pop()
        op = block.first_op
        while op is not None:
            following = op.next_op
            goes_on = chain if _is_last(op) else []
            if isinstance(op, scf.IfOp) and len(goes_on) >= LONGEST:
                following = _cut(goes_on)  # behind the first of the chain, perhaps far above
                blocks.append((following.regions[1].block, [_Link(following, 1)]))
                break
            for side, region in enumerate(op.regions):
                inside = [*goes_on, _Link(op, side)] if isinstance(op, scf.IfOp) else []
                blocks += [(inner, inside) for inner in region.blocks]
            op = following


def _is_last(op: Operation) -> bool:
    """Whether nothing follows in the block but what it yields."""
    return isinstance(op.next_op, scf.YieldOp) and op.next_op.next_op is None


def _cut(chain: list[_Link]) -> scf.IfOp:
    """Put what the last link holds behind the first one; gives the `if` that it is in then."""
    first, last = chain[0].op, chain[-1].op
    body = _block(chain[-1])
    results = _results_on_the_way(chain)
    moved = _moved(body)
    handed = _used_of_the_way(chain, moved, results)
    builder = Builder.at_end(body, last.location)
    builder.create(scf.YieldOp, poison(builder, [v.type for v in last.results]))
    count, blocks = len(first.results), {moved, *map(_block, chain)}
    _hand_up(chain, handed)
    for value, result in zip(handed, first.results[count + 1 :], strict=True):
        results = [result if v is value else v for v in results]
        value.replace_uses_with_if(result, lambda use: _stands_in(use.operation, blocks) is moved)
    then = Block()
    Builder.at_end(then, first.location).create(scf.YieldOp, first.results[:count])
    Builder.at_end(moved, first.location).create(scf.YieldOp, results)
    kinds = [v.type for v in first.results[:count]]
    regions = (Region(then), Region(moved))
    behind = Builder.after(first).create(scf.IfOp, (first.results[count],), kinds, {}, {}, regions)
    for old, new in zip(first.results, behind.results, strict=False):
        old.replace_uses_with_if(new, lambda use: use.operation is not then.last_op)
        new.name_hint = old.name_hint
    return behind


def _block(link: _Link) -> Block:
    return link.op.regions[link.side].block


def _yielded(link: _Link) -> Sequence[SSAValue]:
    end = _block(link).last_op
    assert end is not None
    return end.operands


def _results_on_the_way(chain: list[_Link]) -> list[SSAValue]:
    """What the first link gives on the way through the chain, as it stands in the last one or on the way."""
    results = list(_yielded(chain[0]))
    for link in chain[1:]:
        yielded = _yielded(link)
        results = [yielded[v.index] if isinstance(v, OpResult) and v.op is link.op else v for v in results]
    return results


def _moved(body: Block) -> Block:
    """A new block with the operations of another, all but what it yields, which is dropped."""
    moved = Block()
    for op in list(body.ops):
        op.detach()
        if isinstance(op, scf.YieldOp):
            op.erase()
        else:
            moved.add_op(op)
    return moved


def _stands_in(op: Operation, blocks: Collection[Block]) -> Block | None:
    """Which of some blocks an operation is in, at any depth; the innermost."""
    block = op.parent
    while block is not None and block not in blocks:
        around = block.parent_op()
        block = around.parent if around is not None else None
    return block


def _used_of_the_way(chain: list[_Link], moved: Block, results: Sequence[SSAValue]) -> dict[SSAValue, int]:
    """The values made in the blocks of the chain that are wanted behind it, each with the number of the link.

    Asked of the uses of these few values, not of all that is moved, which may be most of the kernel.
    """
    levels = {_block(link): level for level, link in enumerate(chain)}
    blocks = {moved, *levels}
    level_of: dict[SSAValue, int] = {}
    for block, level in levels.items():
        for value in (v for op in block.ops for v in op.results):
            if any(_stands_in(use.operation, blocks) is moved for use in value.uses):
                level_of[value] = level
    for value in results:
        level_of_owner = levels.get(value.op.parent) if isinstance(value, OpResult) and value.op.parent else None
        if level_of_owner is not None:
            level_of[value] = level_of_owner
    return level_of


def _hand_up(chain: list[_Link], handed: Mapping[SSAValue, int]) -> None:
    """Have every link also give whether it has done what there is to do, and the values made in it or further down."""
    below: dict[SSAValue, SSAValue] = {}
    done: SSAValue | None = None
    for level in reversed(range(len(chain))):
        op, side = chain[level]
        passed = [v for v, made_at in handed.items() if made_at >= level]
        kinds = [i1, *(v.type for v in passed)]
        for number, region in enumerate(op.regions):
            if not region.blocks:
                region.add_block(Block())
                Builder.at_end(region.block, op.location).create(scf.YieldOp)
            end = region.block.last_op
            assert end is not None
            builder = Builder.before(end)
            if number != side:
                end.operands = (*end.operands, builder.constant(1, i1), *poison(builder, kinds[1:]))
                continue
            flag = done if done is not None else builder.constant(0, i1)
            end.operands = (*end.operands, flag, *(below.get(v, v) for v in passed))
        count = len(op.results)
        op.results = SSAValues((*op.results, *(OpResult(kind, op, count + i) for i, kind in enumerate(kinds))))
        done, below = op.results[count], dict(zip(passed, op.results[count + 1 :], strict=True))
