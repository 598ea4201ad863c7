"""The shape of tile that a named layout is for, where none is given: the smallest that shows all of it."""

from __future__ import annotations

from collections.abc import Sequence

from weft.base import LayoutError
from weft.layouts import (
    Layout,
    LinearLayout,
    NVMMASharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    describe,
)

__all__ = ["name_of", "natural_shape"]

LARGEST = 1 << 14


def natural_shape(layout: Layout | LinearLayout) -> tuple[int, ...]:
    """The smallest tile in which no place is a copy that would not be one in a larger tile.

    LayoutError where there is no such tile of up to 16,384 elements.

    >>> from weft.layouts import BlockedLayout
    >>> natural_shape(BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]))
    (32, 16)
    """
    if isinstance(layout, LinearLayout):
        return tuple(layout.out_dims.values())
    stated = getattr(layout, "shape", None)
    if stated:
        return tuple(stated)
    if isinstance(layout, SwizzledSharedLayout):
        shape = [1] * layout.rank
        shape[layout.order[0]] = max(layout.vec * layout.max_phase, 8)
        if layout.rank > 1:
            shape[layout.order[1]] = max(layout.per_phase * layout.max_phase, 4)
        return tuple(shape)
    if isinstance(layout, NVMMASharedLayout):
        columns = 8 * max(layout.swizzle_byte_width, 16) // layout.element_bitwidth
        shape = [8 if d == max(layout.rank - 2, 0) else 1 for d in range(layout.rank)]
        shape[-1] = columns
        return tuple(reversed(shape)) if layout.transposed else tuple(shape)
    if isinstance(layout, TensorMemoryLayout):
        return tuple(size * parts for size, parts in zip(layout.block, layout.cta_split_num or (1, 1), strict=True))
    if isinstance(layout, SharedLinearLayout):
        bases = (*layout.offset_bases, *layout.block_bases)
        return tuple(1 << max(basis[d] for basis in bases).bit_length() for d in range(layout.rank))
    return _grown(layout)


def name_of(layout: Layout | LinearLayout, shape: Sequence[int]) -> str | None:
    """The named layout that a linear one equals, as text; None where there is none, or the layout has a name.

    >>> from weft.layouts import BlockedLayout
    >>> name_of(BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0]).to_linear([32, 16]), [32, 16])
    'BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])'
    """
    if not isinstance(layout, LinearLayout) or not layout.out_dims or tuple(layout.out_dims.values()) != tuple(shape):
        return None
    missing = {"register", "lane", "warp", "block"} if layout.has_in("lane") else {"block"}
    whole = layout
    for dim in sorted(missing - set(layout.in_dims)):
        whole = whole * LinearLayout.zeros_1d(1, dim, next(iter(layout.out_dims)))
    places = [d for d in ("register", "lane", "warp", "offset", "block") if whole.has_in(d)]
    if len(places) != len(whole.in_dims):
        return None
    named = describe(whole.transpose_ins(places))
    return None if named is None else repr(named)


def _copies(layout: Layout, shape: Sequence[int]) -> int | None:
    """Bits of places that hold copies; None where the layout does not fit the shape."""
    try:
        linear = layout.to_linear(shape)
    except LayoutError:
        return None
    return linear.total_in_log - linear.rank


def _grown(layout: Layout) -> tuple[int, ...]:
    shape = [1] * layout.rank
    best = _copies(layout, shape)
    changed = True
    while changed:
        changed = False
        for dim in range(layout.rank):
            for factor in (2, 4, 8, 16, 32, 64, 128):  # copies may lie between what a dimension has, and what it gets
                wider = [s * factor if d == dim else s for d, s in enumerate(shape)]
                size = 1
                for s in wider:
                    size *= s
                copies = _copies(layout, wider) if size <= LARGEST else None
                if copies is not None and (best is None or copies < best):
                    shape, best, changed = wider, copies, True
                    break
    if best is None:
        raise LayoutError(f"no small tile fits {layout!r}", hint="give the shape of the tile by --shape")
    return tuple(shape)
