"""What an operation that changes the shape of a tile makes of its layout, such that it moves nothing.

`..._result` gives the layout of an operation's result from that of its source, `..._source` the other way round: the
result is in the registers where the source was, under another name (Zhou et al., Linear Layouts, arXiv 2505.23819v5,
theorem 9.3: layouts are closed under these operations both ways; the way round that nobody asks for is not written).

    >>> from weft.layouts import BlockedLayout
    >>> tile = BlockedLayout([1, 2], [4, 8], [2, 1], [1, 0]).to_linear([8, 16])
    >>> trans_result(tile, [1, 0]).bases["register"]
    ((1, 0),)
    >>> reshape_result(reshape_result(tile, [128]), [8, 16]) == tile
    True

A layout maps register, lane, ... to dim0, dim1, ..., in this order; tiles are read row by row, the last dimension the
fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.base import LayoutError

from .arguments import axis_of, shape_of
from .linear import LinearLayout
from .zoo.parts import dim_names

__all__ = [
    "broadcast_result",
    "broadcast_source",
    "expand_dims_result",
    "expand_dims_source",
    "fp4_to_fp_result",
    "join_result",
    "join_source",
    "reduce_result",
    "reshape_result",
    "split_result",
    "trans_result",
]


def _shape(layout: LinearLayout, operation: str) -> list[int]:
    """The shape of the tile; LayoutError unless the outputs are dim0, dim1, ..."""
    if not isinstance(layout, LinearLayout):
        raise LayoutError(
            f"{operation}: expected a LinearLayout, got {layout!r}", hint="a named layout has to_linear(shape)"
        )
    names = list(layout.out_dims)
    if names != dim_names(len(names)):
        raise LayoutError(
            f"{operation}: the outputs of a tile's layout are dim0, dim1, ..., got {', '.join(names) or 'none'}"
        )
    return list(layout.out_dims.values())


def _axis(axis: int, rank: int, operation: str) -> int:
    """A dimension, counted from the end if it is negative."""
    return axis_of(axis, rank, f"{operation}: the axis", negative=True)


# -- the dimensions in another order, or cut otherwise -----------------------------------------------------------------


def trans_result(source: LinearLayout, order: Sequence[int]) -> LinearLayout:
    """The layout of `trans(x, order)`: dimension i of the result is dimension order[i] of x.

    >>> from weft.layouts import BlockedLayout, trans_result
    >>> trans_result(BlockedLayout([1, 1], [1, 4], [1, 1], [1, 0]).to_linear([1, 4]), [1, 0]).bases["lane"]
    ((1, 0), (2, 0))
    """
    names = dim_names(len(_shape(source, "trans")))
    if not isinstance(order, (list, tuple)) or sorted(map(repr, order)) != sorted(map(repr, range(len(names)))):
        raise LayoutError(f"trans: the order must have each of {len(names)} dimensions once, got {order!r}")
    moved = source.transpose_outs([names[d] for d in order])
    return moved.rename_outs({names[d]: names[i] for i, d in enumerate(order)})


def reshape_result(source: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The layout of `reshape(x, shape)`, which keeps the order of elements.

    >>> from weft.layouts import BlockedLayout, reshape_result
    >>> reshape_result(BlockedLayout([1], [4], [1], [0]).to_linear([4]), [2, 2]).bases["lane"]
    ((0, 1), (1, 0))
    """
    before, shape = _shape(source, "reshape"), shape_of(shape, "reshape: the shape")
    if prod(before) != prod(shape):
        raise LayoutError(
            f"reshape: a tile of shape {before} has {prod(before)} elements, one of {list(shape)} {prod(shape)}"
        )
    names = dim_names(len(shape))
    fastest_first = source.transpose_outs(dim_names(len(before))[::-1])
    return fastest_first.reshape_outs(dict(zip(names[::-1], reversed(shape), strict=True))).transpose_outs(names)


# -- dimensions of size 1 ----------------------------------------------------------------------------------------------


def expand_dims_result(source: LinearLayout, axis: int) -> LinearLayout:
    """The layout of `expand_dims(x, axis)`: a new dimension of size 1.

    >>> from weft.layouts import BlockedLayout, expand_dims_result
    >>> expand_dims_result(BlockedLayout([1], [4], [1], [0]).to_linear([4]), 1).bases["lane"]
    ((1, 0), (2, 0))
    """
    shape = _shape(source, "expand_dims")
    shape.insert(_axis(axis, len(shape) + 1, "expand_dims"), 1)
    return source.reshape_outs(dict(zip(dim_names(len(shape)), shape, strict=True)))


def expand_dims_source(result: LinearLayout, axis: int) -> LinearLayout:
    """The layout of x where `expand_dims(x, axis)` is to have the layout `result`.

    >>> from weft.layouts import BlockedLayout, expand_dims_source
    >>> expand_dims_source(BlockedLayout([1, 1], [4, 1], [1, 1], [0, 1]).to_linear([4, 1]), 1).bases["lane"]
    ((1,), (2,))
    """
    shape = _shape(result, "expand_dims")
    at = _axis(axis, len(shape), "expand_dims")
    if shape[at] != 1:
        raise LayoutError(f"expand_dims: dimension {at} of its result has size 1, the layout is for {shape}")
    return _without(result, at)


def _without(layout: LinearLayout, axis: int) -> LinearLayout:
    """The layout without one coordinate; the places that only this told apart hold copies."""
    names = list(layout.out_dims)
    kept = [name for i, name in enumerate(names) if i != axis]
    rest = layout.sublayout(layout.in_dims, kept)
    return rest.rename_outs(dict(zip(kept, dim_names(len(kept)), strict=True)))


def _checked_broadcast(small: Sequence[int], large: Sequence[int]) -> list[int]:
    """The dimensions along which a shape is broadcast."""
    small, large = shape_of(small, "broadcast: the shape"), shape_of(large, "broadcast: the shape")
    if len(small) != len(large) or any(s not in (1, n) for s, n in zip(small, large, strict=False)):
        raise LayoutError(
            f"broadcast: {list(small)} cannot be broadcast to {list(large)}; sizes other than 1 must be the same"
        )
    return [d for d, (s, n) in enumerate(zip(small, large, strict=True)) if s != n]


def broadcast_result(source: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The layout of x, broadcast to that shape, where each thread holds all copies of its elements.

    >>> from weft.layouts import BlockedLayout, broadcast_result
    >>> broadcast_result(BlockedLayout([1, 1], [4, 1], [1, 1], [1, 0]).to_linear([4, 1]), [4, 2]).bases["register"]
    ((0, 1),)
    """
    axes = _checked_broadcast(_shape(source, "broadcast"), shape)
    copies = [
        [bit if d == axis else 0 for d in range(len(shape))]
        for axis in axes
        for bit in (1 << k for k in range((shape[axis] - 1).bit_length()))
    ]
    bases = {**source.bases, "register": [*copies, *source.bases["register"]]}
    return LinearLayout.from_bases(bases, dict(zip(source.out_dims, shape, strict=True)), require_surjective=False)


def broadcast_source(result: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """The layout of x, of that shape, where x broadcast is to have the layout `result`, with copies in registers.

    >>> from weft.layouts import BlockedLayout, broadcast_source
    >>> wide = BlockedLayout([1, 1], [4, 8], [1, 1], [1, 0]).to_linear([4, 8])
    >>> broadcast_source(wide, [4, 1]).bases["lane"]
    ((0, 0), (0, 0), (0, 0), (1, 0), (2, 0))
    """
    after = _shape(result, "broadcast")
    axes = set(_checked_broadcast(shape, after))
    bases = {
        dim: [[0 if d in axes else c for d, c in enumerate(basis)] for basis in own_bases]
        for dim, own_bases in result.bases.items()
    }
    return LinearLayout.from_bases(bases, dict(zip(result.out_dims, shape, strict=True)), require_surjective=False)


# -- two tiles in one --------------------------------------------------------------------------------------------------


def join_result(source: LinearLayout) -> LinearLayout:
    """The layout of `join(x, y)`: x and y side by side along a new last dimension, the lowest bit of the register.

    >>> from weft.layouts import BlockedLayout, join_result
    >>> join_result(BlockedLayout([1], [4], [1], [0]).to_linear([4])).bases["register"]
    ((0, 1),)
    """
    rank = len(_shape(source, "join"))
    pair = LinearLayout.identity_1d(2, "register", f"dim{rank}")
    wide = expand_dims_result(source, rank)
    return (pair * wide.transpose_outs([f"dim{rank}", *dim_names(rank)])).transpose_outs(dim_names(rank + 1))


def join_source(result: LinearLayout) -> LinearLayout:
    """The layout of x and y where `join(x, y)` is to have the layout `result`; LayoutError where it would move data.

    >>> from weft.layouts import BlockedLayout, join_source
    >>> join_source(BlockedLayout([1, 2], [4, 1], [1, 1], [1, 0]).to_linear([4, 2])).bases["lane"]
    ((1,), (2,))
    """
    return _halves(result, "join")


def fp4_to_fp_result(source: LinearLayout, axis: int) -> LinearLayout:
    """The layout of `fp4_to_fp(x, axis)`, whose axis is twice as long: each byte of x becomes two neighbours.

    >>> from weft.layouts import BlockedLayout, fp4_to_fp_result
    >>> fp4_to_fp_result(BlockedLayout([1], [4], [1], [0]).to_linear([4]), 0).bases["lane"]
    ((2,), (4,))
    """
    _shape(source, "fp4_to_fp")
    names = list(source.out_dims)
    at = f"dim{_axis(axis, len(_shape(source, 'fp4_to_fp')), 'fp4_to_fp')}"
    pair = LinearLayout.identity_1d(2, "register", at)
    return (pair * source.transpose_outs([at, *(n for n in names if n != at)])).transpose_outs(names)


def split_result(source: LinearLayout) -> LinearLayout:
    """The layout of both results of `split(x)`; LayoutError unless a register bit alone tells the halves apart.

    Registers that would hold copies are left out.

    >>> from weft.layouts import BlockedLayout, split_result
    >>> split_result(BlockedLayout([1, 2], [4, 1], [1, 1], [1, 0]).to_linear([4, 2])).bases["lane"]
    ((1,), (2,))
    """
    return _halves(source, "split").remove_zero_bases("register")


def _halves(whole: LinearLayout, operation: str) -> LinearLayout:
    shape = _shape(whole, operation)
    if not shape or shape[-1] != 2:
        raise LayoutError(f"{operation}: the last dimension of the joined tile has size 2, the layout is for {shape}")
    last = len(shape) - 1
    only = tuple(int(d == last) for d in range(len(shape)))
    registers = list(whole.bases.get("register", ()))
    if only not in registers:
        raise LayoutError(
            f"{operation}: no bit of the register number alone tells the two halves apart, so data would have to move",
            hint=f"one of the register bases must be {only}; convert the layout first",
        )
    registers.remove(only)
    bases = {**whole.bases, "register": registers}
    if any(basis[last] for columns in bases.values() for basis in columns):
        raise LayoutError(f"{operation}: more than one basis moves along the last dimension")
    smaller = LinearLayout.from_bases(bases, whole.out_dims, require_surjective=False)
    return _without(smaller, last)


# -- reductions --------------------------------------------------------------------------------------------


def reduce_result(source: LinearLayout, axis: int) -> LinearLayout:
    """The layout of `reduce(x, axis)`: each thread that had elements of a row has its result.

    Registers that would hold copies are left out; lanes and warps that the axis told apart do hold copies.

    >>> from weft.layouts import BlockedLayout, reduce_result
    >>> reduce_result(BlockedLayout([1, 1], [2, 2], [1, 1], [1, 0]).to_linear([2, 2]), 1).bases["lane"]
    ((0,), (1,))
    """
    shape = _shape(source, "reduce")
    return _without(source, _axis(axis, len(shape), "reduce")).remove_zero_bases("register")
