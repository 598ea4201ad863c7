"""What the meanings of instructions are made of: registers to matrices and back, and rounding.

>>> import numpy as np
>>> layout = LinearLayout.identity_1d(2, "register", "dim1") * LinearLayout.identity_1d(4, "lane", "dim0")
>>> to_matrix(np.arange(8).reshape(1, 4, 2), layout)[0, 3]
array([6, 7])
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from weft.layouts import LinearLayout
from weft.ops.dtypes import DTYPES
from weft.ops.rounding import round_odd, round_to

from .instruction import Array

__all__ = ["DTYPES", "from_matrix", "multiply", "round_odd", "round_to", "shape_of", "tf32", "to_matrix"]


def shape_of(layout: LinearLayout) -> tuple[int, ...]:
    """The matrix's shape: dim0, dim1, ..."""
    return tuple(layout.out_dims[d] for d in sorted(layout.out_dims))


@lru_cache(maxsize=256)
def _places(layout: LinearLayout) -> Array:
    """For each (warp, lane, register), flattened in this order, the row-major index of its element."""
    sizes = [layout.in_dims.get(d, 1) for d in ("warp", "lane", "register")]
    index = dict(zip(("warp", "lane", "register"), np.indices(sizes), strict=True))
    coordinates = layout.apply({d: index[d] for d in layout.in_dims})
    flat: Array = np.zeros(sizes, np.int64)
    for d in sorted(layout.out_dims):
        flat = flat * layout.out_dims[d] + coordinates[d]
    return flat.reshape(-1)


@lru_cache(maxsize=256)
def _homes(layout: LinearLayout) -> Array:
    """For each element, row-major, one of the places that hold it."""
    places = _places(layout)
    homes = np.zeros(int(np.prod(shape_of(layout))), np.int64)
    homes[places[::-1]] = np.arange(len(places) - 1, -1, -1)
    return homes


def to_matrix(registers: Array, layout: LinearLayout) -> Array:
    """Registers [warp, lane, register] to matrices [group, dim0, dim1]; a group is as many warps as the layout has."""
    warps = layout.in_dims.get("warp", 1)
    flat = registers.reshape(registers.shape[0] // warps, -1)
    return flat[:, _homes(layout)].reshape(len(flat), *shape_of(layout))


def from_matrix(matrix: Array, layout: LinearLayout) -> Array:
    """The inverse of `to_matrix`: each place gets its element."""
    warps = layout.in_dims.get("warp", 1)
    flat = matrix.reshape(len(matrix), -1)[:, _places(layout)]
    return flat.reshape(len(matrix) * warps, layout.in_dims["lane"], layout.in_dims.get("register", 1))


def tf32(x: Array) -> Array:
    """f32 as a tensor core reads it in tf32: the lowest 13 bits are ignored."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def multiply(a: Array, b: Array, c: Array, accumulator: str, saturates: bool = False) -> Array:
    """c + a @ b of stacked matrices, as a matrix unit with this type of sums is taken to do it: exact, rounded once."""
    if accumulator == "i32":
        total = c.astype(np.int64) + a.astype(np.int64) @ b.astype(np.int64)
        if saturates:
            total = total.clip(-(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    if accumulator == "f64":
        return _in_order(a, b, c)
    return round_to(c.astype(np.float64) + a.astype(np.float64) @ b.astype(np.float64), accumulator)


def _in_order(a: Array, b: Array, c: Array) -> Array:
    """f64: one product after the other."""
    total = c.astype(np.float64)
    for k in range(a.shape[2]):
        total = total + a[:, :, k, None] * b[:, k, None, :]
    return total
