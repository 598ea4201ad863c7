"""Pieces of which the layouts of hardware are put together, as direct sums.

In these, the order of output dimensions says along which dimension a layout repeats first where a tile is larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..dims import exact_log2, placed, starts_of
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
    outs: list[tuple[str, int]] = []
    columns: list[int] = []
    at = 0
    for dim in order:
        log = exact_log2(sizes[dim], in_dim)
        own = 0 if dim == zero else log
        columns += [1 << at + i if own else 0 for i in range(log)]
        outs.append((f"dim{dim}", own))
        at += own
    return LinearLayout._make([(in_dim, len(columns))], outs, columns)


def boxes(order: Sequence[int], *parts: tuple[str, Sequence[int]]) -> LinearLayout:
    """Nested boxes: the direct sum of `identity_nd` of each input dimension and its sizes, the innermost first."""
    bits: dict[int, int] = dict.fromkeys(order, 0)
    places: list[tuple[int, int]] = []
    ins: list[tuple[str, int]] = []
    for in_dim, sizes in parts:
        before = len(places)
        for dim in order:
            begun = bits[dim]
            bits[dim] += exact_log2(sizes[dim], in_dim)
            places += [(dim, bit) for bit in range(begun, bits[dim])]
        ins.append((in_dim, len(places) - before))
    starts, at = dict[int, int](), 0
    for dim, log in bits.items():
        starts[dim] = at
        at += log
    outs = [(f"dim{dim}", log) for dim, log in bits.items()]
    return LinearLayout._make(ins, outs, [1 << starts[dim] + bit for dim, bit in places])


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
    outs = [(name, min(log, exact_log2(sizes[name], f"the output dimension {name}"))) for name, log in layout._outs]
    starts = starts_of(outs)
    kept, at = 0, 0
    for (_, log), (_, own) in zip(layout._outs, outs, strict=True):
        kept |= (1 << own) - 1 << at
        at += log
    columns = [placed(column & kept, layout._outs, starts) for column in layout._columns]
    return LinearLayout._make(layout._ins, outs, columns)
