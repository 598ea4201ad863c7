"""The named layout of what an operation on shapes gives: what Triton calls it, so that kernels can name it too.

    trans of a BlockedLayout                    a BlockedLayout with its parameters in the other order
    reshape of a BlockedLayout                  a BlockedLayout, where there is one that moves nothing
    join of a BlockedLayout                     a BlockedLayout with two more registers; split of one: its slice
    everything else                             a DistributedLinearLayout

The maps themselves are those of `weft.layouts.infer`; a name is only ever used for the map that it stands for.

>>> from weft.layouts import BlockedLayout
>>> transposed(BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]), [64, 32], [1, 0])
BlockedLayout([4, 1], [4, 8], [1, 4], [0, 1])
>>> reshaped(BlockedLayout([4], [32], [4], [0]), [1024], [16, 64])
BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from weft.base import LayoutError
from weft.layouts import (
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    Layout,
    LinearLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    infer,
)

from .encoding import linear_encoding

Shape = Sequence[int]


def linear_name(linear: LinearLayout) -> DistributedLayout:
    """A layout of registers given by its bases."""
    named = linear_encoding(linear).named
    assert isinstance(named, DistributedLinearLayout)
    return named


def memory_linear_name(layout: SharedLayout, shape: Shape) -> SharedLayout:
    """A layout of memory given by its bases."""
    return layout if isinstance(layout, SharedLinearLayout) else _shared(lambda linear: linear, layout, shape)


def _named(wanted: LinearLayout, guess: DistributedLayout | None, shape: Shape) -> DistributedLayout:
    """The guess, where it is that map; else the map's bases."""
    if guess is not None:
        try:
            if guess.to_linear(shape) == wanted:
                return guess
        except LayoutError:
            pass
    return linear_name(wanted)


def _moved(basis: Sequence[int], order: Shape) -> list[int]:
    return [basis[d] for d in order]


def transposed(layout: DistributedLayout, shape: Shape, order: Shape) -> DistributedLayout:
    """The layout of `permute(x, order)`."""
    if list(order) == list(range(len(order))):
        return layout
    wanted = infer.trans_result(layout.to_linear(shape), order)
    guess = None
    if isinstance(layout, BlockedLayout):
        guess = BlockedLayout(
            _moved(layout.size_per_thread, order),
            _moved(layout.threads_per_warp, order),
            _moved(layout.warps_per_cta, order),
            [list(order).index(d) for d in layout.order],
            [_moved(basis, order) for basis in layout.cga_layout],
        )
    return _named(wanted, guess, [shape[d] for d in order])


def joined(layout: DistributedLayout, shape: Shape) -> DistributedLayout:
    """The layout of `join(x, y)`."""
    rank = len(shape)
    wanted = infer.join_result(layout.to_linear(shape))
    guess: DistributedLayout | None = None
    if isinstance(layout, SliceLayout) and layout.dim == rank:
        try:  # what was split comes together again, whatever the order of its registers
            if infer.split_result(layout.parent.to_linear([*shape, 2])) == layout.to_linear(shape):
                return layout.parent
        except LayoutError:
            pass
    elif isinstance(layout, BlockedLayout):
        guess = BlockedLayout(
            [*layout.size_per_thread, 2],
            [*layout.threads_per_warp, 1],
            [*layout.warps_per_cta, 1],
            [rank, *layout.order],
            [[*basis, 0] for basis in layout.cga_layout],
        )
    return _named(wanted, guess, [*shape, 2])


def split(layout: DistributedLayout, shape: Shape) -> DistributedLayout:
    """The layout of both halves of `split(x)`, x of this shape. Raises LayoutError where data would have to move."""
    wanted = infer.split_result(layout.to_linear(shape))
    return _named(wanted, SliceLayout(len(shape) - 1, layout), shape[:-1])


def expanded(layout: DistributedLayout, axis: int) -> DistributedLayout:
    """The layout of `expand_dims(x, axis)`: of a slice, what it is a slice of. Raises LayoutError for other layouts."""
    if not isinstance(layout, SliceLayout):
        raise LayoutError(
            f"expand_dims along axis {axis} needs a tensor in a SliceLayout({axis}, ...), this one is in {layout!r}",
            hint=f"make it with layout=gl.SliceLayout({axis}, parent), or gl.convert_layout(x, gl.SliceLayout({axis}, "
            "parent)), where parent is the layout of the result",
        )
    if layout.dim != axis:
        raise LayoutError(
            f"expand_dims along axis {axis} needs a tensor sliced in axis {axis}, this one is sliced in axis "
            f"{layout.dim}: {layout!r}",
            hint=f"use x[{_index_of(layout.dim, layout.rank)}], or gl.SliceLayout({axis}, parent)",
        )
    return layout.parent


def _index_of(axis: int, rank: int) -> str:
    return ", ".join("None" if d == axis else ":" for d in range(rank + 1))


def reduced(layout: DistributedLayout, axis: int) -> DistributedLayout:
    """The layout of a reduction along an axis."""
    return SliceLayout(axis, layout)


def unpacked(layout: DistributedLayout, shape: Shape, axis: int) -> DistributedLayout:
    """The layout of `fp4_to_fp(x, ..., axis)`."""
    wanted = infer.fp4_to_fp_result(layout.to_linear(shape), axis)
    guess = None
    long, longer = ([size << step if d == axis else size for d, size in enumerate(shape)] for step in (1, 2))
    if isinstance(layout, BlockedLayout) and layout.order[0] == axis:
        sizes = [2 * size if d == axis else size for d, size in enumerate(layout.size_per_thread)]
        guess = BlockedLayout(sizes, layout.threads_per_warp, layout.warps_per_cta, layout.order, layout.cga_layout)
        # Triton asks the question of a tile that is already as long as the result, and finds fewer names.
        if guess.to_linear(longer) != infer.fp4_to_fp_result(layout.to_linear(long), axis):
            guess = None
    return _named(wanted, guess, long)


# -- reshape -------------------------------------------------------------------------------------------------------


def reshaped(layout: DistributedLayout, shape: Shape, to: Shape) -> DistributedLayout:
    """The layout of `reshape(x, to)`."""
    if list(shape) == list(to) and isinstance(layout, BlockedLayout):
        return layout
    wanted = infer.reshape_result(layout.to_linear(shape), to)
    guess = _blocked_of(layout, shape, to) if isinstance(layout, BlockedLayout) else None
    return _named(wanted, guess, to)


def _blocked_of(layout: BlockedLayout, shape: Shape, to: Shape) -> BlockedLayout | None:
    """The blocked layout of the new shape in which the same parts follow each other; None where there is none."""
    if layout.cga_layout:
        return None
    parts: list[list[int]] = [[1] * len(to), [1] * len(to), [1] * len(to)]
    order: list[tuple[int, list[int]]] = []
    fields = (layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta)
    for before, after in _groups(shape, to):
        if not after:
            continue
        if any(prod(counts[d] for counts in fields) > shape[d] for d in before[1:]):
            return None  # copies in the midst of the group
        if [d for d in layout.order if d in before] != before[::-1]:
            return None  # the group is not read row by row
        room = [to[d] for d in after]
        for counts, part in zip(fields, parts, strict=True):
            left = prod(counts[d] for d in before)
            for i in reversed(range(len(after))):
                take = min(left, room[i]) if i else left
                part[after[i]] = take
                left //= take
                room[i] = max(1, room[i] // take)
        first = min((layout.order.index(d) for d in before), default=len(shape))
        order.append((first, after[::-1]))
    fastest_first = [d for _, dims in sorted(order, key=lambda group: group[0]) for d in dims]
    return BlockedLayout(parts[0], parts[1], parts[2], fastest_first)


def _groups(shape: Shape, to: Shape) -> list[tuple[list[int], list[int]]]:
    """Dimensions of one shape and of the other that hold the same elements: [4, 8, 2] and [32, 2] as 4 x 8 = 32, 2 = 2.

    A group ends as soon as it can, but takes dimensions of size 1 that follow it.
    """
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(shape) and j < len(to):
        before, after = [i], [j]
        left, right = shape[i], to[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left *= shape[i]
                before.append(i)
                i += 1
            else:
                right *= to[j]
                after.append(j)
                j += 1
        while i < len(shape) and shape[i] == 1:
            before.append(i)
            i += 1
        while j < len(to) and to[j] == 1:
            after.append(j)
            j += 1
        groups.append((before, after))
    return groups


# -- shared memory -------------------------------------------------------------------------------------------------


def _shared(wanted: Callable[[LinearLayout], LinearLayout], layout: SharedLayout, shape: Shape) -> SharedLayout:
    """What becomes of a layout of memory that has no other name."""
    linear = wanted(layout.to_linear(shape))
    if not any(linear.bases.values()):  # one element, which a SharedLinearLayout has no basis for
        return SwizzledSharedLayout(1, 1, 1, list(range(len(linear.out_dims)))[::-1])
    named: Layout = linear_encoding(linear).named
    assert isinstance(named, SharedLinearLayout)
    return SharedLinearLayout(named.offset_bases, named.block_bases, _alignment(layout))


def _alignment(layout: SharedLayout) -> int:
    """Bytes of which the address of memory in a layout is a multiple."""
    if isinstance(layout, NVMMASharedLayout):
        return max(128, 8 * layout.swizzle_byte_width)
    return layout.alignment if isinstance(layout, SharedLinearLayout) else 16


def memory_transposed(layout: SharedLayout, shape: Shape, order: Shape) -> SharedLayout:
    """The layout of `memory.permute(order)`."""
    if list(order) == list(range(len(order))):
        return layout
    inverse = [list(order).index(d) for d in range(len(order))]
    if isinstance(layout, SwizzledSharedLayout):
        moved = [inverse[d] for d in layout.order]
        cga = [_moved(basis, order) for basis in layout.cga_layout]
        return SwizzledSharedLayout(layout.vec, layout.per_phase, layout.max_phase, moved, cga)
    if isinstance(layout, NVMMASharedLayout) and list(order) == [1, 0]:
        cga = [_moved(basis, order) for basis in layout.cga_layout]
        transposed = NVMMASharedLayout(
            layout.swizzle_byte_width, layout.element_bitwidth, layout.rank, not layout.transposed,
            layout.fp4_padded, cga,
        )  # fmt: skip
        try:  # without a swizzle, Triton's layout is the same map transposed or not
            if transposed.to_linear([shape[d] for d in order]) == infer.trans_result(layout.to_linear(shape), order):
                return transposed
        except LayoutError:
            pass
    if isinstance(layout, PaddedSharedLayout):
        return PaddedSharedLayout(
            layout.interval_padding_pairs,
            [_moved(basis, order) for basis in layout.offset_bases],
            [_moved(basis, order) for basis in layout.block_bases],
            _moved(layout.shape, order),
        )
    return _shared(lambda linear: infer.trans_result(linear, order), layout, shape)


def memory_reshaped(layout: SharedLayout, shape: Shape, to: Shape) -> SharedLayout:
    """The layout of `memory.reshape(to)`. Raises LayoutError for a padded layout that is not the same rows again."""
    if list(shape) == list(to):
        return layout
    if isinstance(layout, PaddedSharedLayout):
        linear = infer.reshape_result(layout.to_linear(shape), to)
        bases = linear.bases
        return PaddedSharedLayout(layout.interval_padding_pairs, bases["offset"], bases.get("block", ()), tuple(to))
    if isinstance(layout, NVMMASharedLayout):
        guess = _nvmma_reshaped(layout, shape, to)
        if guess is not None:
            return guess
    return _shared(lambda linear: infer.reshape_result(linear, to), layout, shape)


def _nvmma_reshaped(layout: NVMMASharedLayout, shape: Shape, to: Shape) -> SharedLayout | None:
    """The layout of the same kind in another shape, where that is the same map."""
    if layout.cga_layout or not 2 <= len(to) <= 5:
        return None
    guess = NVMMASharedLayout(
        layout.swizzle_byte_width, layout.element_bitwidth, len(to), layout.transposed, layout.fp4_padded
    )
    try:
        same = guess.to_linear(to) == infer.reshape_result(layout.to_linear(shape), to)
    except LayoutError:
        return None
    return guess if same else None
