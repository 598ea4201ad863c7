"""Blocked layouts for tiles: of an access, of a product, of anything else.

A thread has consecutive elements along the dimension that is first in the order, lanes follow along it, then warps;
what is left of either goes along the other dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from weft.analysis import Facts
from weft.layouts import BlockedLayout

VECTOR_BITS = 128


def blocked_for(
    shape: Sequence[int], order: Sequence[int], vector: int | Sequence[int], lanes: int, warps: int
) -> BlockedLayout:
    """A blocked layout of a tile: vectors along the first dimension of the order, then lanes, then warps.

    `vector` may be a box, the elements of each thread along every dimension.

    >>> blocked_for([64, 128], [1, 0], 4, 32, 4)
    BlockedLayout([1, 4], [1, 32], [4, 1], [1, 0])
    """
    rank = len(shape)
    per_warp, per_block = [1] * rank, [1] * rank
    if isinstance(vector, int):
        per_thread = [1] * rank
        first = order[0]
        per_thread[first] = max(1, min(vector, shape[first], prod(shape) // (lanes * warps) or 1))
    else:
        per_thread = [min(v, s) for v, s in zip(vector, shape, strict=True)]
    for left, parts in ((lanes, per_warp), (warps, per_block)):
        for dim in order:
            room = max(1, shape[dim] // (per_thread[dim] * per_warp[dim] * per_block[dim]))
            take = min(left, room)
            parts[dim] *= take
            left //= take
        parts[order[-1]] *= left
    return BlockedLayout(per_thread, per_warp, per_block, list(order))


def access_layout(
    shape: Sequence[int], facts: Facts, bits: int, lanes: int, warps: int, strides: Sequence[tuple[int, int]] = ()
) -> BlockedLayout:
    """The layout in which a tile of addresses is accessed: vectors and lanes along consecutive addresses.

    `bits` are those of an element in memory. Among dimensions with equally many consecutive addresses, the one whose
    entry in `strides` is least comes first, and then the last one.
    """
    strides = strides or [(0, 0)] * len(shape)
    order = sorted(range(len(shape)), key=lambda d: (-min(facts.contiguity[d], shape[d]), strides[d], -d))
    run = min(facts.contiguity[order[0]], facts.divisibility[order[0]] * 8 // bits, VECTOR_BITS // bits)
    return blocked_for(shape, order, max(1, run), lanes, warps)


def warps_over_rows(layout: BlockedLayout, shape: Sequence[int], axis: int) -> BlockedLayout | None:
    """A layout whose warps along an axis go along the other dimensions instead, as far as these have room; None where
    they have none. A reduction along the axis crosses fewer warps, and a warp has fewer rows to reduce.

    >>> warps_over_rows(BlockedLayout([1, 1], [1, 32], [1, 16], [1, 0]), [2, 2048], 1)
    BlockedLayout([1, 1], [1, 32], [2, 8], [1, 0])
    """
    warps = list(layout.warps_per_cta)
    for d, size in enumerate(shape):
        room = size // (layout.size_per_thread[d] * layout.threads_per_warp[d] * warps[d])
        if d != axis and room > 1 and warps[axis] > 1:
            moved = min(room, warps[axis])
            warps[d] *= moved
            warps[axis] //= moved
    return replace(layout, warps_per_cta=warps) if warps != list(layout.warps_per_cta) else None


def multiplying_layout(shape: Sequence[int], lanes: int, warps: int) -> BlockedLayout:
    """The result of a product by single multiplications: squares, for which the fewest operands are loaded."""
    each = prod(shape) // (lanes * warps)
    side = 4 if each >= 16 else 2 if each >= 4 else 1
    rank = len(shape)
    return blocked_for(shape, list(reversed(range(rank))), [1] * (rank - 2) + [side, side], lanes, warps)
