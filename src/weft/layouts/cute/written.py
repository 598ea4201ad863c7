"""The CuTe layout that a linear map is, as text: Shape:Stride, with a Swizzle where that makes it one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from weft.base import LayoutError

from .. import f2
from ..affine import AffineLayout
from ..linear import LinearLayout
from ..zoo import Layout, PaddedSharedLayout
from .layout import CuteLayout, CuteSwizzle, Nested

__all__ = ["to_cute"]


def to_cute(layout: LinearLayout | AffineLayout | Layout, shape: Sequence[int] | None = None) -> str:
    """The text of the CuTe layout that a layout is; LayoutError, with the reason, where there is none.

    A linear or affine map is written as it is, from its inputs to its outputs. With the shape of a tile a layout of its
    places, named or linear, is written as CuTe has it: memory from coordinates to offsets, padding included; registers
    as ((lane, warp, block), register) to the number of the element, column by column.

    >>> to_cute(LinearLayout({"lane": [(4,), (8,)], "register": [(1,), (2,)]}, {"offset": 16}))
    '(4,4):(4,1)'
    >>> from weft.layouts import NVMMADistributedLayout, NVMMASharedLayout, PaddedSharedLayout
    >>> to_cute(NVMMASharedLayout(128, 16), [8, 64])
    'Swizzle<3,3,3> o 0 o (8,64):(64,1)'
    >>> to_cute(PaddedSharedLayout.with_identity_for([[64, 8]], [8, 64], [1, 0]), [8, 64])
    '(8,64):(72,1)'
    >>> to_cute(NVMMADistributedLayout([2, 0], [1, 1], [16, 8]), [16, 8])  # mma.m16n8: (T32,V4) -> (M16,N8)
    '((4,8),(2,2)):((32,1),(16,8))'
    """
    if isinstance(layout, AffineLayout):
        return str(cute_of(layout.linear, _flat(layout)))
    if isinstance(layout, LinearLayout) and shape is None:
        return str(cute_of(layout))
    if shape is None:
        raise LayoutError(f"to_cute: {layout!r} describes a layout only together with the shape of a tile")
    return str(_named(layout, shape))


def _flat(layout: AffineLayout) -> int:
    """The constant as one number, the first output dimension the fastest."""
    value, at = 0, 0
    for name, size in layout.out_dims.items():
        value |= layout.constant[name] << at
        at += size.bit_length() - 1
    return value


def cute_of(layout: LinearLayout, constant: int = 0) -> CuteLayout:
    """The shortest CuTe layout that is x -> layout(x) ^ constant: an outer mode for each input dimension.

    Several output dimensions are one offset, the first the fastest.
    """
    groups = [list(layout.in_columns(name)) for name in layout.in_dims]
    if not groups:
        raise LayoutError("to_cute: the layout has no input dimension, and a CuTe layout has a mode at least")
    columns = [c for group in groups for c in group]
    swizzle = None if _overlap(columns) is None else _find_swizzle(columns)
    if swizzle is not None:
        groups = [[swizzle(c) for c in group] for group in groups]
    elif (clash := _overlap(columns)) is not None:
        places = [f"{name} = {1 << i}" for name, log in layout.in_dims.items() for i in range(log.bit_length() - 1)]
        first, second = clash
        raise LayoutError(
            f"to_cute: {places[first]} moves the offset by {columns[first]} and {places[second]} by "
            f"{columns[second]}, which have bits in common, so that the layout is no Shape:Stride; and no "
            "Swizzle<B,M,S> takes all such bits away"
        )
    offset = swizzle(constant) if swizzle else constant
    modes = [_mode([_from(offset, value) for value in group]) for group in groups]
    shapes, strides = [m[0] for m in modes], [m[1] for m in modes]
    if len(modes) == 1:
        return CuteLayout(shapes[0], strides[0], swizzle, offset)
    return CuteLayout(tuple(shapes), tuple(strides), swizzle, offset)


def _from(offset: int, value: int) -> int:
    """What a bit adds to an offset that it is xored to: all of its value, or all of it taken away."""
    if offset & value not in (0, value):
        raise LayoutError(
            f"to_cute: from the offset {offset} on a bit is xored that is {value}; some of it is there and some is "
            "not, which no stride does"
        )
    return -value if offset & value else value


def _named(layout: Layout | LinearLayout, shape: Sequence[int]) -> CuteLayout:
    """The CuTe layout of a layout of the places of a tile."""
    linear = layout if isinstance(layout, LinearLayout) else layout.to_linear(shape)
    if not linear.has_in("offset"):
        if not linear.has_in("lane"):
            raise LayoutError(f"to_cute: {layout!r} is neither in registers nor in shared memory")
        threads = [c for name in ("lane", "warp", "block") if linear.has_in(name) for c in linear.in_columns(name)]
        parts = {"thread": threads, "value": linear.in_columns("register") if linear.has_in("register") else ()}
        size = 1 << linear.total_out_log
        flat = {name: [(c,) for c in columns] for name, columns in parts.items()}
        return cute_of(LinearLayout(flat, {"x": size}, require_surjective=False))
    if linear.in_dims.get("block", 1) > 1:
        raise LayoutError(f"to_cute: {layout!r} has parts in {linear.in_dims['block']} blocks, an offset is in one")
    offsets = linear.invert().sublayout(list(linear.out_dims), ["offset"])
    if not isinstance(layout, PaddedSharedLayout):
        return cute_of(offsets)
    groups = [[int(layout.address(column)) for column in offsets.in_columns(name)] for name in offsets.in_dims]
    sums = np.zeros(1, np.int64)
    for value in (value for group in groups for value in group):
        sums = np.concatenate([sums, sums + value])
    if (sums != layout.address(offsets.table())).any():
        raise LayoutError(f"to_cute: {layout!r} has a swizzle below its padding, and CuTe's swizzles come last")
    modes = [_mode(group) for group in groups]
    if len(modes) == 1:
        return CuteLayout(*modes[0])
    return CuteLayout(tuple(m[0] for m in modes), tuple(m[1] for m in modes))


def _mode(values: Sequence[int]) -> tuple[Nested, Nested]:
    """The mode whose bits add these offsets: runs that double become one size, zeros a stride of 0."""
    runs: list[tuple[int, int]] = []
    for value in values:
        size, stride = runs[-1] if runs else (1, 0)
        if runs and value == stride * size:
            runs[-1] = size * 2, stride
        else:
            runs.append((2, value))
    if not runs:
        return 1, 0
    if len(runs) == 1:
        return runs[0]
    return tuple(size for size, _ in runs), tuple(stride for _, stride in runs)


# -- finding a swizzle -------------------------------------------------------------------------------------------------


def _overlap(columns: Sequence[int]) -> tuple[int, int] | None:
    """Two of the offsets that have a bit in common."""
    owner: dict[int, int] = {}
    for i, column in enumerate(columns):
        for bit in f2.bits(column):
            if bit in owner:
                return owner[bit], i
            owner[bit] = i
    return None


def _find_swizzle(columns: Sequence[int]) -> CuteSwizzle | None:
    """A swizzle of few bits after which no two offsets have a bit in common; it is its own inverse."""
    total = 0
    for column in columns:
        total |= column
    width = total.bit_length()
    for bits in range(1, width):
        for base, shift in product(range(width - bits + 1), range(bits, width)):
            for signed in (shift, -shift):
                if base + bits + shift <= width:
                    swizzle = CuteSwizzle(bits, base, signed)
                    if _overlap([swizzle(c) for c in columns]) is None:
                        return swizzle
    return None
