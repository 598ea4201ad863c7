"""Scalar arguments of types that C has no name for: as the bits that a kernel takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

__all__ = ["bits_of"]

_TYPES: dict[str, Any] = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8e5": ml_dtypes.float8_e5m2,
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e4b8": ml_dtypes.float8_e4m3fnuz,
    "fp8e5b16": ml_dtypes.float8_e5m2fnuz,
}


def bits_of(name: str) -> Callable[[Any], int]:
    """Numbers as the bits of a type, rounded to it; what is too large for it becomes infinite, as in a kernel.

    >>> hex(bits_of("bf16")(1.0))
    '0x3f80'
    >>> hex(bits_of("fp16")(1e6))
    '0x7c00'
    """
    dtype = np.dtype(_TYPES[name])
    bits = np.dtype(f"u{dtype.itemsize}")

    def rounded(value: Any) -> int:
        with np.errstate(over="ignore"):
            return int(np.asarray(value, np.float64).astype(dtype).view(bits))

    return rounded
