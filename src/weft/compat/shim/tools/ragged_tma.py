"""triton.tools.ragged_tma: rows of a tensor, read and written as though there were no others.

    desc = create_ragged_descriptor(x, [64, 32])                # on the host
    tile = load_ragged(desc, offset, size, [row, column])       # rows offset + row ... of x[offset : offset + size]
    store_ragged(desc, offset, size, [row, column], tile)

What is outside of those rows reads as 0 and is not written.  The descriptor has two dimensions more than the tensor,
and its ragged dimension is 2**30 rows long.  With strides of `2**34 - s`, `s` and `s` elements, the coordinates

    2**30,  offset + size,  2**30 - size + row

lead to `2**64 + (offset + row) * s`, and addresses have 64 bits: to row `offset + row`.  The last coordinate is outside
of its dimension just where `row` is not below `size`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import language as tl
from weft.base import LaunchError
from weft.runtime import TensorDescriptor, jit

ROWS = tl.constexpr(2**30)
"""The length of the ragged dimension."""
FAR = tl.constexpr(2**34)
"""With ROWS, all of the address space in elements of a byte."""
LONG = tl.constexpr(0x7FFF0000)
"""The length of a dimension that is never left."""


def create_ragged_descriptor(T: Any, block_shape: Sequence[int], ragged_dim: int = 0) -> TensorDescriptor:
    """A descriptor of a tensor of 2 or 3 dimensions for `load_ragged` and its like; any but the last may be ragged."""
    plain = TensorDescriptor.from_tensor(T, list(block_shape))
    rank = len(plain.shape)
    if rank > 3:
        raise LaunchError(f"a ragged descriptor is for at most 3 dimensions, the array has {rank}")
    if not -rank <= ragged_dim < rank or ragged_dim % rank == rank - 1:
        raise LaunchError(f"dimension {ragged_dim} of {rank} cannot be ragged: only those before the last can")
    ragged_dim %= rank
    shape, strides = list(plain.shape), list(plain.strides)
    if shape[ragged_dim] > ROWS.value:
        raise LaunchError(f"at most 2**30 rows can be ragged, the array has {shape[ragged_dim]}")
    step = strides[ragged_dim]
    shape[ragged_dim] = ROWS.value
    sizes = [LONG.value, LONG.value, *shape]
    return TensorDescriptor(T, sizes, [FAR.value - step, step, *strides], [1, 1, *block_shape])


@jit
def create_ragged_descriptor_device_2d(  # type: ignore[no-untyped-def]
    ptr,
    shape_0,
    shape_1,
    stride_0,
    stride_1,
    block_shape_0: tl.constexpr,
    block_shape_1: tl.constexpr,
    ragged_dim: tl.constexpr = 0,
):
    """The same in a kernel, of a matrix."""
    tl.static_assert(ragged_dim == 0, "only dimensions before the last can be ragged")
    step = tl.cast(stride_0, tl.int64)
    return tl.make_tensor_descriptor(
        ptr, [LONG, LONG, ROWS, shape_1], [FAR - step, step, stride_0, stride_1], [1, 1, block_shape_0, block_shape_1]
    )


@jit
def create_ragged_descriptor_device_3d(  # type: ignore[no-untyped-def]
    ptr,
    shape_0,
    shape_1,
    shape_2,
    stride_0,
    stride_1,
    stride_2,
    block_shape_0: tl.constexpr,
    block_shape_1: tl.constexpr,
    block_shape_2: tl.constexpr,
    ragged_dim: tl.constexpr = 0,
):
    """The same in a kernel, of a tensor of 3 dimensions."""
    tl.static_assert(ragged_dim == 0 or ragged_dim == 1, "only dimensions before the last can be ragged")
    block: tl.constexpr = [1, 1, block_shape_0, block_shape_1, block_shape_2]
    if ragged_dim == 0:
        step = tl.cast(stride_0, tl.int64)
        shape = [LONG, LONG, ROWS, shape_1, shape_2]
    else:
        step = tl.cast(stride_1, tl.int64)
        shape = [LONG, LONG, shape_0, ROWS, shape_2]
    return tl.make_tensor_descriptor(ptr, shape, [FAR - step, step, stride_0, stride_1, stride_2], block)


@jit
def to_ragged_indices(batch_offset, batch_size, row):  # type: ignore[no-untyped-def]
    """The three coordinates that a row of a part of a tensor has in a ragged descriptor."""
    return ROWS, batch_offset + batch_size, ROWS - batch_size + row


@jit
def _place(batch_offset, batch_size, coords, ragged_dim: tl.constexpr):  # type: ignore[no-untyped-def]
    far, end, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    return (far, end, *coords[:ragged_dim], row, *coords[ragged_dim + 1 :])


@jit
def load_ragged(  # type: ignore[no-untyped-def]
    TMA,
    batch_offset,
    batch_size,
    coords,
    ragged_dim: tl.constexpr = 0,
):
    """A block of T[batch_offset : batch_offset + batch_size], at `coords` of it; what is outside reads as 0."""
    tl.static_assert(len(TMA.shape) == len(coords) + 2, "a descriptor of create_ragged_descriptor is needed")
    data = TMA.load(_place(batch_offset, batch_size, coords, ragged_dim))
    return tl.reshape(data, data.shape[2:])


@jit
def store_ragged(  # type: ignore[no-untyped-def]
    TMA,
    batch_offset,
    batch_size,
    coords,
    data,
    ragged_dim: tl.constexpr = 0,
):
    """Write a block of T[batch_offset : batch_offset + batch_size]; what is outside is not written."""
    block = tl.reshape(data, (1, 1, *data.shape))
    TMA.store(_place(batch_offset, batch_size, coords, ragged_dim), block)


@jit
def atomic_add_ragged(  # type: ignore[no-untyped-def]
    TMA,
    batch_offset,
    batch_size,
    coords,
    data,
    ragged_dim: tl.constexpr = 0,
):
    """Add to a block of T[batch_offset : batch_offset + batch_size]; what is outside is left alone."""
    block = tl.reshape(data, (1, 1, *data.shape))
    TMA.atomic_add(_place(batch_offset, batch_size, coords, ragged_dim), block)
