"""Move layout conversions of small tiles before the loads of large ones that would be held across their barriers.

    %x = tt.load %p    (1,024 words a thread)            %m = tt.load %q
    %m = tt.load %q    (1 word)                          %a = ttg.convert_layout %m
    %a = ttg.convert_layout %m               becomes     %x = tt.load %p
    %y = arith.subf %x, broadcast %a                     %y = arith.subf %x, broadcast %a

A conversion through shared memory waits for other warps, so all that was loaded before it and is used behind it is held
in registers meanwhile. Of a tile that does not fit, `ptxas` keeps nearly everything in memory: the gradients of the
weights of a group norm took ten times as long as with Triton on an H200. With the small tile converted first, nothing
waits between a large load and its uses, and the tile is used up some registers at a time (`lower/depth_first.py`).

The pass moves a conversion with what it needs, within a block of IR, over operations that neither write memory nor wait
for anything but the threads of the program. It moves only what takes little beside the tiles that are held.
"""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from weft.ir import find, is_tensor, tt
from weft.ir.gpu.ttg import ConvertLayoutOp

from .effects import droppable, shareable
from .overlap_products import words_of

HELD = 128
"""Words of a thread that may wait for a conversion: half of its registers."""
SMALL = 8
"""By how much a tile must be smaller than what is held for it."""


def convert_early(module: ModuleOp) -> None:
    """Move conversions of small tiles before loads of large ones, in all blocks of a module."""
    for op in find(module, ConvertLayoutOp):
        first, held = _held(op)
        if first is not None and held > HELD and words_of(op.results[0]) * SMALL <= held:
            _move(op, first)


def _held(conversion: ConvertLayoutOp) -> tuple[Operation | None, int]:
    """The first load before a conversion whose tile is used behind it, and the words of all such tiles."""
    first: Operation | None = None
    held, needed, between = 0, _needs(conversion), set[Operation]({conversion})
    op = conversion.prev_op
    while op is not None and (shareable(op) or droppable(op)) and not op.regions:
        if op in needed:
            needed |= _needs(op)
        elif isinstance(op, tt.LoadOp) and is_tensor(op.results[0].type) and _outlasts(op, between):
            first, held = op, held + words_of(op.results[0])
        between.add(op)
        op = op.prev_op
    return first, held


def _outlasts(load: Operation, between: Set[Operation]) -> bool:
    """Whether a loaded tile, or what is computed from it, is used behind the operations that follow the load."""
    reached = {load}
    todo = [load]
    while todo:
        users = {use.operation for use in todo.pop().results[0].uses} - reached
        if not users <= between:
            return True
        reached |= users
        todo += [x for x in users if x.results]
    return False


def _needs(op: Operation) -> set[Operation]:
    """The operations of the same block from which one has its operands."""
    return {x.owner for x in op.operands if isinstance(x.owner, Operation) and x.owner.parent is op.parent}


def _move(conversion: Operation, first: Operation) -> None:
    """Move a conversion before a load, with what it needs of what stands between them."""
    block = conversion.parent
    assert isinstance(block, Block)
    between: list[Operation] = [conversion]
    while between[-1] is not first:
        previous = between[-1].prev_op
        assert previous is not None
        between.append(previous)
    needed = {conversion}
    for op in between:
        if op in needed:
            needed |= _needs(op)
    if first in needed:
        return
    for op in reversed(between):
        if op in needed:
            op.detach()
            block.insert_op_before(op, first)
