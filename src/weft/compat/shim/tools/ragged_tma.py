"""triton.tools.ragged_tma: descriptors of arrays whose rows belong to groups of different sizes.

    descriptor = create_ragged_descriptor(x, [BLOCK_M, BLOCK_K])             # on the host
    tile = load_ragged(descriptor, first, rows, [row, column])               # in a kernel
    store_ragged(descriptor, first, rows, [row, column], tile)

act on the group of `rows` rows that begins at row `first` of x, as if it were an array of its own: what lies outside of
the group reads as zero and is not written.

A descriptor checks coordinates against a shape that the host gave once, so the end of a group has to be that of the
shape, LIMIT. Row r of the group is therefore asked for as row LIMIT - rows + r, which is inside exactly when r < rows.
A second coordinate, first + rows, moves the address along by so many rows, and a third, which is always LIMIT, moves it
back by LIMIT rows: its stride is 2**34 elements less a row, and LIMIT * 2**34 elements are a multiple of 2**64 bytes,
at which addresses begin anew.
"""

from __future__ import annotations

from typing import Any

import weft.language as tl
from weft.runtime import TensorDescriptor, jit

__all__ = ["atomic_add_ragged", "create_ragged_descriptor", "load_ragged", "store_ragged", "to_ragged_indices"]

LIMIT = tl.constexpr(2**30)
"""The size that every group seems to have; no array has more rows."""

_UNCHECKED = 0x7FFF0000
"""The size of the two dimensions that only move the address."""


def create_ragged_descriptor(T: Any, block_shape: Any, ragged_dim: int = 0) -> TensorDescriptor:
    """A descriptor of an array of two or three dimensions whose `ragged_dim` (not the last) is divided into groups.

    `block_shape` is the shape of the tiles to load and store, of as many dimensions as the array.
    """
    block, shape = list(block_shape), list(T.shape)
    rank = len(shape)
    axis = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    if rank > 3:
        raise ValueError(f"a ragged descriptor is of at most 3 dimensions, got shape {tuple(shape)}")
    if not 0 <= axis < rank - 1:
        raise ValueError(f"ragged_dim is one of the first {rank - 1} dimensions, got {ragged_dim}")
    if len(block) != rank:
        raise ValueError(
            f"block_shape {tuple(block)} is not of {rank} dimensions, as the array's shape {tuple(shape)} is"
        )
    if shape[axis] > LIMIT.value:
        raise ValueError(f"dimension {axis} is of {shape[axis]}, a ragged one is of at most 2**30")
    strides = [T.stride(i) for i in range(rank)]
    row = strides[axis]
    shape[axis] = LIMIT.value
    return TensorDescriptor(T, [_UNCHECKED, _UNCHECKED, *shape], [2**34 - row, row, *strides], [1, 1, *block])


@jit
def to_ragged_indices(batch_offset, batch_size, row):  # type: ignore[no-untyped-def]
    """The three coordinates that stand for a row of a group."""
    return LIMIT, batch_offset + batch_size, LIMIT - batch_size + row


@jit
def load_ragged(TMA, batch_offset, batch_size, coords, ragged_dim: tl.constexpr = 0):  # type: ignore[no-untyped-def, assignment]
    """A tile of the group, from these coordinates in it; zeros outside of the group."""
    tl.static_assert(len(TMA.shape) == len(coords) + 2, "load_ragged needs a descriptor of create_ragged_descriptor")
    back, along, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    tile = TMA.load([back, along, *coords[:ragged_dim], row, *coords[ragged_dim + 1 :]])
    return tl.reshape(tile, tile.shape[2:])


@jit
def store_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = 0):  # type: ignore[no-untyped-def, assignment]
    """Write a tile of the group; what lies outside of the group is left alone."""
    back, along, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    tile = tl.reshape(data, [1, 1, *data.shape])
    TMA.store([back, along, *coords[:ragged_dim], row, *coords[ragged_dim + 1 :]], tile)


@jit
def atomic_add_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = 0):  # type: ignore[no-untyped-def, assignment]
    """Add a tile to the group, atomically; what lies outside of the group is left alone."""
    back, along, row = to_ragged_indices(batch_offset, batch_size, coords[ragged_dim])
    tile = tl.reshape(data, [1, 1, *data.shape])
    TMA.atomic_add([back, along, *coords[:ragged_dim], row, *coords[ragged_dim + 1 :]], tile)
