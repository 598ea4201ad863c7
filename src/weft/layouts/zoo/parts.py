"""Pieces of which the layouts of hardware are put together, as direct sums.

In these, the order of output dimensions says along which dimension a layout repeats first where a tile is larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import mul

from ..linear import LinearLayout

identity = LinearLayout.identity_1d


def dim_names(rank: int) -> list[str]:
    """dim0, dim1, ..."""
    return [f"dim{i}" for i in range(rank)]


def matrix_order(rank: int, row_major: bool = True) -> tuple[int, ...]:
    """The dimensions of a matrix, or of a batch of them, the fastest first; the batch is always the slowest."""
    last = (rank - 1, rank - 2) if row_major else (rank - 2, rank - 1)
    return (*last, *range(rank - 3, -1, -1))


def operand_order(index: int, rank: int) -> tuple[int, ...]:
    """The dimensions of an operand of a product, the one that is summed over first."""
    return matrix_order(rank, row_major=index == 0)


def identity_nd(in_dim: str, sizes: Sequence[int], order: Sequence[int], zero: int | None = None) -> LinearLayout:
    """Count through a box of these sizes, the first dimension of `order` the fastest.

    Along the dimension `zero` the count does not move: its places hold copies. The outputs are in the order of `order`.
    """
    pieces = []
    for dim in order:
        make = LinearLayout.zeros_1d if dim == zero else LinearLayout.identity_1d
        pieces.append(make(sizes[dim], in_dim, f"dim{dim}"))
    return reduce(mul, pieces)


def copies(in_dim: str, count: int, out_dim: str) -> LinearLayout:
    """Places that all hold the same."""
    return LinearLayout.zeros_1d(count, in_dim, out_dim)


def fragment(order: Sequence[int], *pieces: LinearLayout) -> LinearLayout:
    """The direct sum of pieces, the first the innermost, with all output dimensions, in this order."""
    start = identity_nd("register", [1] * len(order), order)
    names = list(start.out_dims)
    result = start
    for piece in pieces:
        present = [name for name in names if piece.has_out(name)]
        result = result * piece.transpose_outs(present)
    return result.transpose_outs(names)


def grow(layout: LinearLayout, sizes: Mapping[str, int]) -> LinearLayout:
    """Repeat the layout until it covers these sizes: with more of its first input dimension, along each output."""
    inner = next(iter(layout.in_dims))
    result = layout
    for name, size in layout.out_dims.items():
        if size < sizes[name]:
            result = result * identity(sizes[name] // size, inner, name)
    return result


def clip(layout: LinearLayout, sizes: Mapping[str, int]) -> LinearLayout:
    """Wrap the layout where it exceeds these sizes: what was beyond is a copy of what is inside."""
    if all(size <= sizes[name] for name, size in layout.out_dims.items()):
        return layout
    names = list(layout.out_dims)
    outs = {name: min(size, sizes[name]) for name, size in layout.out_dims.items()}
    bases = {
        dim: [tuple(c & (outs[n] - 1) for n, c in zip(names, basis, strict=True)) for basis in columns]
        for dim, columns in layout.bases.items()
    }
    return LinearLayout.from_bases(bases, outs, require_surjective=False)
