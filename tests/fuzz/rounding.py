"""Results that are rounded once, for every value that a float may have.

NumPy and ml_dtypes round on the way where two types are far apart. Here a result is found in f64 first, rounded to odd
where it does not fit (its last bit is then set), from which the nearest of any narrower type is the right one.

cast(a, elem)       a conversion of values, as docs/reference/semantics.md has it
fused(x, y, z)      x * y + z of f16, bf16, f32
through_fp8(a, e)   there and back, to a wider float
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .elements import DTYPES, Array, is_float

FP8: dict[str, tuple[np.dtype[Any], float]] = {
    "float8e5": (np.dtype(ml_dtypes.float8_e5m2), 57344.0),
    "float8e4nv": (np.dtype(ml_dtypes.float8_e4m3fn), 448.0),
}
"""For each the type in NumPy, and the largest value, which is what greater ones become."""


def cast(a: Array, elem: str) -> Array:
    """A conversion of values: to floats the nearest, to integers toward zero and saturating, of NaN 0."""
    if elem == "i1":
        return np.asarray(a != 0)
    if is_float(elem):
        return a if a.dtype == DTYPES[elem] else _nearest(_wide(a, exact=elem != "f64"), elem)
    if a.dtype.kind in "iub":
        return np.asarray(a.astype(DTYPES[elem]))
    return _whole(a.astype(np.float64), DTYPES[elem])


def fused(x: Array, y: Array, z: Array) -> Array:
    """x * y + z, rounded once; the product of two f32 is exact in f64."""
    elem = next(name for name, dtype in DTYPES.items() if dtype == x.dtype)
    a, b, c = (v.astype(np.float64) for v in (x, y, z))
    product = a * b
    total = product + c
    back = total - product
    return _nearest(_odd(total, (product - (total - back)) + (c - back)), elem)


def through_fp8(a: Array, name: str) -> Array:
    """The nearest fp8, as a value of the type that came in."""
    dtype, most = FP8[name]
    return np.clip(a.astype(np.float32), -most, most).astype(dtype).astype(np.float32).astype(a.dtype)


def _wide(a: Array, exact: bool) -> Array:
    """Numbers as f64: the nearest ones, or, for what rounds them further, with what does not fit kept (`exact`)."""
    wide = a.astype(np.float64)
    if a.dtype.itemsize < 8 or a.dtype.kind == "f" or not exact:
        return wide
    top = (a >> 32).astype(np.float64) * 2.0**32  # of an integer of 64 bits
    low = (a & 0xFFFFFFFF).astype(np.float64)
    total = top + low
    return _odd(total, low - (total - top))


def _nearest(wide: Array, elem: str) -> Array:
    if elem != "bf16":
        return np.asarray(wide.astype(DTYPES[elem]))
    single = wide.astype(np.float32)  # from which ml_dtypes goes on, rounding to nearest
    return np.asarray(_odd(single, wide - single).astype(DTYPES[elem]))


def _odd(rounded: Array, rest: Array) -> Array:
    """`rounded`, of which `rest` was left out, rounded to odd."""
    bits = np.ascontiguousarray(rounded).view(f"u{rounded.dtype.itemsize}").reshape(rounded.shape)
    even = np.isfinite(rounded) & (rest != 0) & ((bits & 1) == 0)
    toward = np.where(rest > 0, np.inf, -np.inf).astype(rounded.dtype)
    return np.asarray(np.where(even, np.nextafter(rounded, toward), rounded))


def _whole(wide: Array, dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    below, above = wide <= float(info.min), wide >= float(info.max)
    inside = np.where(below | above | np.isnan(wide), 0, wide).astype(dtype)
    return np.where(below, info.min, np.where(above, info.max, inside)).astype(dtype)
