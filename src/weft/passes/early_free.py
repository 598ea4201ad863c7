"""Give tiles of a loop a buffer less, if another block has room then: their copies begin when they have been read.

    for ...:                                with two stages and two buffers of each tile
        wait for copies of i
        begin copies of i + 1 of %k, %q     to the other buffers
        %s = dot %k, %h
        ... compute with %s ...
        ... load %q to registers ...
        %d = dot %w, %x
        ... compute with %d ...
becomes
    for ...:                                with one buffer of %k and of %q
        wait for copies of i
        %s = dot %k, %h
        ... compute with %s ...
        begin copies of i + 1 of %k         all warps have read it: the product has ended
        ... load %q to registers ...
        %d = dot %w, %x
        ... compute with %d ...
        begin copies of i + 1 of %q

This is for loops that use the results of all their products at once. Where an iteration first uses the result of a
product, everything before it has been read: by products, which have ended, or into registers. A copy that begins there
has less of an iteration to land in, so tiles that are read first give up a buffer first, and only as many as needed. A
second block on a multiprocessor hides more than that costs; a third would not by much, and its registers are less
certain. In the gradient of a gated delta rule with two stages (chunks of 64, heads of 128), it is the difference
between 144 KB and 112 KB of shared memory, one block of four warps on a multiprocessor and two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.ir import find, tt
from weft.ir.gpu.products import SharedProductOp
from weft.ir.gpu.ttg import ConvertLayoutOp

from .overlap_products import are_used_at_once

VIEWS = ("tt.trans", "ttg.memdesc_trans", "ttg.local_alloc")


def early_free(
    loop: scf.ForOp,
    tiles: Sequence[tuple[SSAValue, int]],
    counts: Sequence[int],
    stages: int,
    blocks: Callable[[int], int],
) -> Mapping[SSAValue, Operation]:
    """The tiles that are to have a buffer less than stages, and behind which operation each is free; none if a
    multiprocessor runs two blocks anyway, or one in any case. `tiles` are loaded values and the bytes of a buffer of
    each, `counts` their buffers, and `blocks` says how many blocks run at a time with so many bytes of buffers.
    """
    if any(n != stages for n in counts) or find(loop.body.block, tt.DotOp) or not are_used_at_once(loop):
        return {}
    bytes = sum(size for _, size in tiles) * stages
    if blocks(bytes) > 1:
        return {}
    place = {op: i for i, op in enumerate(loop.body.block.ops)}
    free = {tile: at for tile, _ in tiles if (at := _free_at(tile, place)) is not None}
    sizes = dict(tiles)
    freed: dict[SSAValue, Operation] = {}
    for tile, at in sorted(free.items(), key=lambda item: place[item[1]]):
        freed[tile] = at
        bytes -= sizes[tile]
        if blocks(bytes) > 1:
            return freed
    return {}


def _free_at(tile: SSAValue, place: Mapping[Operation, int]) -> Operation | None:
    """The first operation that uses the result of a product and comes after the last read of a loaded tile; None if
    there is none in the iteration."""
    read = _last_read(tile, place)
    if read is None:
        return None
    uses = sorted(at for op in place if isinstance(op, SharedProductOp) and (at := _first_use(op, place)) is not None)
    ops = list(place)
    return next((ops[at] for at in uses if at >= read), None)


def _last_read(tile: SSAValue, place: Mapping[Operation, int]) -> int | None:
    """The place of the last operation up to which a loaded tile is read; None if an iteration does not say."""
    maker = tile.owner
    assert isinstance(maker, Operation)
    last = place[maker]  # those that take the tile as it is have it in registers from there on
    for use in tile.uses:
        op = use.operation
        if isinstance(op, SharedProductOp):
            read = _first_use(op, place)
        elif op.name in VIEWS and op in place:
            read = _last_read(op.results[0], place)
        elif isinstance(op, ConvertLayoutOp):
            read = place.get(op)
        else:
            read = last
        if read is None:
            return None
        last = max(last, read)
    return last


def _first_use(product: SharedProductOp, place: Mapping[Operation, int]) -> int | None:
    """Where an iteration uses the result of a product, or of one that adds to it; None if it does not."""
    found = None
    for use in product.d.uses:
        op = use.operation
        at = _first_use(op, place) if isinstance(op, SharedProductOp) and use.index == 2 else _place_of(op, place)
        if at is not None and (found is None or at < found):
            found = at
    return found


def _place_of(op: Operation, place: Mapping[Operation, int]) -> int | None:
    """The place of an operation, or of that around it; None of the end of the iteration."""
    at: Operation | None = op
    while at is not None and at not in place:
        at = at.parent_op()
    return None if at is None or at is list(place)[-1] else place[at]
