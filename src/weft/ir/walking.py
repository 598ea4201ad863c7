"""Going through all operations inside one, without recursion.

xDSL's own `walk` is three generators for each level of nesting, through which every operation is handed: at a depth of
96 that is 288 steps for each. This one takes a step or two, at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, Region

__all__ = ["walk"]


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
    if isinstance(root, Block):
        blocks = [root]
    else:
        regions = root.regions if isinstance(root, Operation) else (root,)
        blocks = [block for region in regions for block in region.blocks]
    for block in blocks:
        op = block.first_op
        while op is not None:
            following = op.next_op
            yield op
            op = following
