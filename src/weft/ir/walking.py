"""Going through all operations inside one, without recursion.

xDSL's own `walk` is three generators for each level of nesting, through which every operation is handed: at a depth of
96 that is 288 steps for each. These take a step or two, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from xdsl.ir import Block, Operation, Region, SSAValue

__all__ = ["find", "successors", "values_in", "walk"]

Found = TypeVar("Found", bound=Operation)


def find(root: Operation | Region | Block, *kinds: type[Found]) -> list[Found]:
    """The operations of these classes, of `walk(root)`; most passes look for a few and find none."""
    wanted = frozenset[type[Operation]](kinds)  # `isinstance` asks abstract classes, and takes four times as long
    found = [root] if isinstance(root, Operation) and type(root) in wanted else []
    todo: list[Block | Operation] = [*_blocks(root)]
    while todo:  # as `walk` does
        place = todo.pop()
        op = place.first_op if isinstance(place, Block) else place
        while op is not None:
            if type(op) in wanted:
                found.append(op)
            following = op.next_op
            if op.regions:
                todo += [following] if following is not None else []
                todo += _blocks(op)
                break
            op = following
    return found  # type: ignore[return-value]


def values_in(root: Operation) -> Iterator[SSAValue]:
    """The results of an operation and of all that is in it, and the arguments of their blocks."""
    for op in walk(root):
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def successors(block: Block) -> Sequence[Block]:
    """The blocks that the end of a block branches to."""
    return () if block.last_op is None else tuple(block.last_op.successors)


def walk(root: Operation | Region | Block) -> Iterator[Operation]:
    """An operation and all that is in it (or all in a region or a block), each before what is nested in it.

    As with xDSL's, the operation at hand may be removed or replaced while the walk waits; what is put before the one
    that would come next is not gone through.
    """
    if isinstance(root, Operation):
        yield root
    todo: list[Block | Operation] = [*_blocks(root)]
    while todo:
        place = todo.pop()
        op = place.first_op if isinstance(place, Block) else place
        while op is not None:
            following = op.next_op
            yield op
            if op.regions:
                todo += [following] if following is not None else []
                todo += _blocks(op)
                break
            op = following


def _blocks(root: Operation | Region | Block) -> list[Block]:
    """The blocks directly inside, the last first."""
    if isinstance(root, Block):
        return [root]
    regions = root.regions if isinstance(root, Operation) else (root,)
    return [block for region in regions for block in region.blocks][::-1]
