"""What the meanings of instructions are made of: registers to matrices and back, and rounding.

>>> import numpy as np
>>> layout = LinearLayout.identity_1d(2, "register", "dim1") * LinearLayout.identity_1d(4, "lane", "dim0")
>>> to_matrix(np.arange(8).reshape(1, 4, 2), layout)[0, 3]
array([6, 7])
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from weft.layouts import LinearLayout

from .instruction import Array

__all__ = ["DTYPES", "from_matrix", "round_odd", "round_to", "shape_of", "tf32", "to_matrix"]

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
}
LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}


def shape_of(layout: LinearLayout) -> tuple[int, ...]:
    """The matrix's shape: dim0, dim1, ..."""
    return tuple(layout.out_dims[d] for d in sorted(layout.out_dims))


@lru_cache(maxsize=256)
def _places(layout: LinearLayout) -> Array:
    """For each (warp, lane, register), flattened in this order, the row-major index of its element."""
    sizes = [layout.in_dims.get(d, 1) for d in ("warp", "lane", "register")]
    index = dict(zip(("warp", "lane", "register"), np.indices(sizes), strict=True))
    found = layout.apply({d: index[d] for d in layout.in_dims})
    flat: Array = np.zeros(sizes, np.int64)
    for d in sorted(layout.out_dims):
        flat = flat * layout.out_dims[d] + found[d]
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


def round_odd(x: Array) -> Array:
    """f64 to f32, inexact ones to the neighbour with an odd last bit: a second rounding is then as if the only one.

    Boldo and Melquiond, Emulation of a FMA and correctly rounded sums (2008).
    """
    near = x.astype(np.float32)
    wide = near.astype(np.float64)
    bits = near.view(np.int32)
    away = np.abs(wide) > np.abs(x)  # towards zero first: the bits of a magnitude count upwards
    bits = np.where(away, bits - 1, bits)
    inexact = (wide != x) & ~np.isnan(x)
    return np.where(inexact, bits | 1, bits).astype(np.int32).view(np.float32)


def round_to(x: Array, elem: str, saturate: bool = True) -> Array:
    """Floats to a type, rounded once to nearest even; fp8 saturates, where asked infinities too, as Triton has it."""
    if elem in ("f64", "f32", "f16"):
        return x.astype(DTYPES[elem])
    narrow = round_odd(x) if x.dtype == np.float64 else x.astype(np.float32)
    if elem in LARGEST and saturate:
        narrow = np.clip(narrow, -LARGEST[elem], LARGEST[elem])
    return narrow.astype(DTYPES[elem])
