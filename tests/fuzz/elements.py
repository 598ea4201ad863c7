"""Element types, and what arithmetic on them means.

Floats hold integers small enough to be exact, so that every result is the same whatever the order and the rounding
(but for those of `special`).
Integers wrap around; division truncates, and is 0 by 0 (the remainder is the dividend); shifts by the width or more
give 0, or the sign.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

DTYPES: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
NAMES = {
    "i1": "tl.int1",
    "f16": "tl.float16",
    "bf16": "tl.bfloat16",
    "f32": "tl.float32",
    "f64": "tl.float64",
    **{f"i{n}": f"tl.int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"tl.uint{n}" for n in (8, 16, 32)},
}
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32")
FLOATS = ("f16", "bf16", "f32", "f64")
EXACT = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24, "f64": 1 << 53}


def is_int(elem: str) -> bool:
    return elem in INTEGERS


def is_float(elem: str) -> bool:
    return elem in FLOATS


def is_signed(elem: str) -> bool:
    return elem[0] == "i" and elem != "i1"


def bits(elem: str) -> int:
    return 1 if elem == "i1" else int(elem.lstrip("biuf"))


def limits(elem: str) -> tuple[int, int]:
    """The least and the greatest value that a variable may have."""
    if elem == "i1":
        return 0, 1
    if is_float(elem):
        return -EXACT[elem], EXACT[elem]
    n = bits(elem)
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if is_signed(elem) else (0, (1 << n) - 1)


def truncated_division(x: Array, y: Array) -> Array:
    """x / y toward zero, 0 where y is 0."""
    if x.dtype.kind == "u":
        return np.where(y == 0, 0, x // np.where(y == 0, 1, y)).astype(x.dtype)
    safe = np.where((y == 0) | (y == -1), 1, y).astype(x.dtype)
    q = x // safe
    r = x - q * safe
    q = q + ((r != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    minus = (np.zeros_like(x) - x).astype(x.dtype)
    return np.where(y == 0, 0, np.where(y == -1, minus, q)).astype(x.dtype)


def truncated_remainder(x: Array, y: Array) -> Array:
    """The remainder that goes with `truncated_division`."""
    r = x - truncated_division(x, y) * y
    return np.where(y == 0, x, r).astype(x.dtype)


def shift(op: str, x: Array, y: Array) -> Array:
    """x << y or x >> y; the count is read as unsigned."""
    n = x.dtype.itemsize * 8
    count = y.astype(f"u{x.dtype.itemsize}") if y.dtype.kind == "i" else y
    inside = count < n
    safe = np.where(inside, count, n - 1).astype(x.dtype)
    if op == "<<":
        return np.where(inside, np.left_shift(x, safe), 0).astype(x.dtype)
    shifted = np.right_shift(x, safe)
    if x.dtype.kind == "i":
        return shifted.astype(x.dtype)
    return np.where(inside, shifted, 0).astype(x.dtype)
