"""Registers of PTX as NumPy arrays of bits, seen under the types that instructions name.

>>> viewed(np.uint32([0xFFFF8000]), "s16"), viewed(np.uint32([0x3F800000]), "f32")
(array([-32768], dtype=int16), array([1.], dtype=float32))
"""

from __future__ import annotations

from typing import Any, TypeVar

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .ptx_text import PTXError

Array = npt.NDArray[Any]
T = TypeVar("T")

PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}
BYTES = {"e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2x2": np.dtype(ml_dtypes.float8_e5m2)}
"""Two floats of eight bits, and the type of each."""


class _ByType(dict[str, T]):
    """Something for each type; PTXError for what is none."""

    def __missing__(self, type: str) -> T:
        raise PTXError(f"the type .{type}")


FLOATS: dict[str, np.dtype[Any]] = {
    **{f"f{n}": np.dtype(f"f{n // 8}") for n in (16, 32, 64)}, "bf16": np.dtype(ml_dtypes.bfloat16),
}  # fmt: skip
DTYPES: _ByType[np.dtype[Any]] = _ByType({
    **{f"{kind}{n}": np.dtype(f"u{n // 8}") for kind in "bu" for n in (8, 16, 32, 64)},
    **{f"s{n}": np.dtype(f"i{n // 8}") for n in (8, 16, 32, 64)},
    **FLOATS,
})  # fmt: skip
"""NumPy's type for one of PTX; `.b32` is unsigned."""
BITS = _ByType({
    "pred": 1, **{type: 8 * dtype.itemsize for type, dtype in DTYPES.items()}, "f16x2": 32, "bf16x2": 32, "f32x2": 64,
    "e4m3x2": 16, "e5m2x2": 16, "tf32": 32,
})  # fmt: skip
"""How wide a type is; a predicate has 1."""
WORDS = _ByType({type: np.dtype(np.bool_ if bits == 1 else f"u{bits // 8}") for type, bits in BITS.items()})
"""What holds the bits of a type."""


def is_float(type: str) -> bool:
    """Whether a type is a float, or two."""
    return type in FLOATS or type in PAIRS


def as_bits(x: Array) -> Array:
    """The bits of any array as unsigned integers; predicates stay as they are."""
    return x if x.dtype.kind in "bu" else x.view(f"u{x.dtype.itemsize}")


def viewed(x: Array, type: str) -> Array:
    """The low bits of a register as numbers of a type."""
    return x.astype(WORDS[type], copy=False).view(DTYPES[type])


def halves(x: Array, bits: int) -> tuple[Array, Array]:
    """The lower and the upper half of a register of so many bits."""
    half = np.dtype(f"u{bits // 16}")
    return x.astype(half), (x.astype(f"u{bits // 8}", copy=False) >> bits // 2).astype(half)


def joined(low: Array, high: Array) -> Array:
    """A register of two halves."""
    bits = 8 * low.dtype.itemsize
    wide = np.dtype(f"u{bits // 4}")
    return np.asarray(low.astype(wide) | high.astype(wide) << bits)
