"""The cluster part of layouts: which blocks of a cluster (CGA) hold which part of a tile.

`cga_layout` is a list of bases, one for each bit of the block's number within the cluster. A basis counts in parts of
the tile: [[1, 0]] says that block 1 has the second half along dimension 0, [[0, 0]] that it has a copy.

    >>> make_cga_layout([2, 2], [2, 1], [1, 0])
    ((0, 0), (1, 0))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .parts import clip, dim_names, grow

Bases = tuple[tuple[int, ...], ...]


def check_cga(owner: str, value: Any, rank: int) -> Bases:
    """A `cga_layout` in canonical form; None is the cluster of one block."""
    bases = checks.bases(owner, "cga_layout", () if value is None else value, rank)
    try:
        if bases:
            _cga_linear(bases, rank)
    except LayoutError as error:
        raise LayoutError(
            f"{owner}: cga_layout {[list(b) for b in bases]} leaves parts of the tile without a block; {error.message}",
            hint="in each dimension the bases are 1, 2, 4, ..., or 0 for copies",
        ) from None
    return bases


def _cga_linear(bases: Sequence[Sequence[int]], rank: int) -> LinearLayout:
    return _cluster(tuple(map(tuple, bases)), rank)


@lru_cache(maxsize=256)
def _cluster(bases: Bases, rank: int) -> LinearLayout:
    return LinearLayout.from_bases({"block": bases}, dim_names(rank))


def make_cga_layout(ctas_per_cga: Sequence[int], cta_split_num: Sequence[int], cta_order: Sequence[int]) -> Bases:
    """The bases for blocks that are arranged as `ctas_per_cga`, of which `cta_split_num` split the tile.

    The other blocks hold copies. `cta_order` lists the dimensions, that of the fastest block number first.

    >>> from weft.layouts import make_cga_layout
    >>> make_cga_layout([2, 1], [2, 1], [1, 0])
    ((1, 0),)
    """
    owner = "make_cga_layout"
    counts = checks.sizes(owner, "ctas_per_cga", ctas_per_cga)
    rank = len(counts)
    splits = checks.sizes(owner, "cta_split_num", cta_split_num, rank, "ctas_per_cga")
    order = checks.permutation(owner, "cta_order", cta_order, rank)
    bases = []
    for dim in order:
        count, split = counts[dim], splits[dim]
        if split > count:
            raise LayoutError(f"{owner}: dimension {dim} is to be split {split} times among {count} blocks")
        bit = 1
        while bit < count:
            bases.append(tuple(bit if bit < split and d == dim else 0 for d in range(rank)))
            bit *= 2
    return tuple(bases)


def shape_per_block(shape: Sequence[int], cga_layout: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape of the part of a tile that one block has; with more parts than elements, blocks have copies."""
    parts = _cga_linear(cga_layout, len(shape)).out_dims.values()
    return tuple(max(1, size // count) for size, count in zip(shape, parts, strict=True))


def combine(block: LinearLayout, cga_layout: Sequence[Sequence[int]], shape: Sequence[int]) -> LinearLayout:
    """The layout of a tile from that of a block: fitted to the block's part of the shape, then one for each block.

    The block's layout is repeated along dimensions where it is too small, in the order of its output dimensions, and
    wrapped to copies where it is too large.
    """
    rank = len(shape)
    names = dim_names(rank)
    target = dict(zip(names, shape, strict=True))
    if not cga_layout and not block.has_in("block"):
        alone = clip(grow(block, target), target).transpose_outs(names)
        return LinearLayout._make((*alone._ins, ("block", 0)), alone._outs, alone._columns)
    cluster = clip(_cga_linear(cga_layout, rank), target)
    sizes = {name: target[name] // cluster.out_dims[name] for name in names}
    fitted = clip(grow(block, sizes), sizes)
    return (fitted * cluster.transpose_outs(list(fitted.out_dims))).transpose_outs(names)
