"""Going through all operations inside one, without recursion.

xDSL's own `walk` is three generators for each level of nesting, through which every operation is handed: at a depth of
96 that is 288 steps for each. These take a step or two, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from xdsl.ir import Block, Operation, Region

__all__ = ["find", "walk"]

Found = TypeVar("Found", bound=Operation)


def find(root: Operation | Region | Block, *kinds: type[Found]) -> list[Found]:
    """The operations of these classes, of `walk(root)`; most passes look for a few and find none."""
    found: list[Operation] = []
    wanted = frozenset[type[Operation]](kinds)
    if isinstance(root, Operation) and type(root) in wanted:
        found.append(root)
    levels = _firsts(root)
    while levels:
        op: Operation | None = levels.pop()
        while op is not None:
            if type(op) in wanted:
                found.append(op)
            following = op.next_op
            if op.regions:
                if following is not None:
                    levels.append(following)
                levels += _firsts(op)
                break
            op = following
    return found  # type: ignore[return-value]


def _firsts(root: Operation | Region | Block) -> list[Operation]:
    """The first operations of the blocks directly inside, the last block's first."""
    return [op for block in reversed(_blocks(root)) if (op := block.first_op) is not None]


def _blocks(root: Operation | Region | Block) -> list[Block]:
    if isinstance(root, Block):
        return [root]
    regions = root.regions if isinstance(root, Operation) else (root,)
    return [block for region in regions for block in region.blocks]


def walk(root: Operation | Region | Block) -> Iterator[Operation]:
    """An operation and all that is in it (or all in a region or a block), each before what is nested in it.

    As with xDSL's, the operation at hand may be removed or replaced while the walk waits; what is put before the one
    that would come next is not gone through.
    """
    if isinstance(root, Operation):
        yield root
    levels = [_inside(root)]
    while levels:
        for op in levels[-1]:
            yield op
            if op.regions:
                levels.append(_inside(op))
                break
        else:
            levels.pop()


def _inside(root: Operation | Region | Block) -> Iterator[Operation]:
    """The operations directly inside."""
    for block in _blocks(root):
        op = block.first_op
        while op is not None:
            following = op.next_op
            yield op
            op = following
