"""Addresses and bounds of a block of a tensor in memory, as tiles.

For a block of 8x16 elements at offsets (i, j) of a tensor with strides (s, t):

    rows   = i + [0 .. 8)         as 8x1          cols = j + [0 .. 16)       as 1x16
    places = base + rows * s + cols * t           inside = 0 <= rows < M  and  0 <= cols < N

All in 64 bits, so that no offset of a large tensor wraps.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, element_of, i64, is_tensor, like, shape_of, splat_value, unit_attr

OFFSET_CHECK = "offset_check"
"""Marks a comparison of an offset with zero, which is dropped where the offset is made of non-negative parts (see
`analysis/bounds.py`)."""


def widen(b: Builder, value: SSAValue) -> SSAValue:
    """A signed integer, or a tile of them, in 64 bits."""
    if element_of(value.type) == i64:
        return value
    return b.create(arith.ExtSIOp, (value,), (like(value.type, i64),)).results[0]


def _along(b: Builder, tile: SSAValue, axis: int, rank: int) -> SSAValue:
    """A tile of one dimension as one of `rank`, of size 1 but along `axis`."""
    for i in range(rank):
        if i != axis:
            tile = b.expand_dims(tile, i)
    return tile


def indices_of(b: Builder, offsets: Sequence[SSAValue], shape: Sequence[int]) -> list[SSAValue]:
    """For each dimension, the positions that the block covers, in 64 bits and in the block's rank.

    An offset that is a tile of one dimension gives the positions itself (the rows of a gather).
    """
    rank = len(shape)
    indices = []
    for axis, (offset, extent) in enumerate(zip(offsets, shape, strict=True)):
        wide = widen(b, offset)
        if not is_tensor(wide.type):
            start = b.splat(wide, (extent,))
            wide = b.binary(arith.AddiOp, start, widen(b, b.make_range(0, extent)))
        indices.append(_along(b, wide, axis, rank))
    return indices


def _spread(b: Builder, scalar: SSAValue, like_: SSAValue) -> SSAValue:
    return b.splat(widen(b, scalar), shape_of(like_.type))


def _is_one(value: SSAValue) -> bool:
    return isinstance(value.owner, arith.ConstantOp) and splat_value(value.owner.properties["value"]) == 1


def places(
    b: Builder, base: SSAValue, indices: Sequence[SSAValue], strides: Sequence[SSAValue], shape: Sequence[int]
) -> SSAValue:
    """The pointers to the elements at these positions."""
    pointers = b.splat(base, shape)
    for index, stride in zip(indices, strides, strict=True):
        step = index if _is_one(stride) else b.binary(arith.MuliOp, index, _spread(b, stride, index))
        pointers = b.addptr(pointers, b.broadcast(step, shape))
    return pointers


def inside(
    b: Builder, indices: Sequence[SSAValue], extents: Sequence[SSAValue], axes: Sequence[int], shape: Sequence[int]
) -> SSAValue | None:
    """Where the positions lie inside the tensor along these axes; None where there are none to check."""
    mask: SSAValue | None = None
    for axis in axes:
        index = indices[axis]
        zero = b.constant(0, index.type)
        low = b.cmpi("sge", index, zero)
        if isinstance(low.owner, Operation):
            low.owner.attributes[OFFSET_CHECK] = unit_attr()
        high = b.cmpi("slt", index, _spread(b, extents[axis], index))
        ok = b.broadcast(b.binary(arith.AndIOp, low, high), shape)
        mask = ok if mask is None else b.binary(arith.AndIOp, mask, ok)
    return mask
