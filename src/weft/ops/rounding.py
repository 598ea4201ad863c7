"""Floats rounded to element types, once: to nearest even, to odd, towards zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import DTYPES
from .elements import ELEMENTS

Array = np.ndarray[Any, np.dtype[Any]]


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


def round_to(x: Array, elem: str) -> Array:
    """Floats to a type, rounded once to nearest even; fp8 saturates, infinities too, as Triton has it."""
    if elem in ("f64", "f32", "f16"):
        return x.astype(DTYPES[elem])
    narrow = round_odd(x) if x.dtype == np.float64 else x.astype(np.float32)
    if ELEMENTS[elem].is_small:
        largest = ELEMENTS[elem].largest
        narrow = np.clip(narrow, -largest, largest)
    return narrow.astype(DTYPES[elem])


def toward_zero(x: Array, elem: str) -> Array:
    """f32 or f64 to the neighbour nearer to zero; what is too large becomes the largest value, infinity stays."""
    largest = ELEMENTS[elem].largest
    near = np.where(np.isfinite(x), round_to(np.clip(x, -largest, largest), elem), round_to(x, elem))
    near = near.astype(DTYPES[elem])
    bits = near.view(f"i{near.dtype.itemsize}")
    away = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))  # one less in the bits is nearer to zero
    return np.where(away, bits - 1, bits).astype(bits.dtype).view(near.dtype)
