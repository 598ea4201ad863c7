"""Scalar arguments of types that C has no name for: as the bits that a kernel takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ops.dtypes import SIGNATURE_DTYPES


def bits_of(name: str) -> Callable[[Any], int]:
    """Numbers as the bits of a type, rounded to it; what is too large for it becomes infinite, as in a kernel.

    >>> hex(bits_of("bf16")(1.0))
    '0x3f80'
    >>> hex(bits_of("fp16")(1e6))
    '0x7c00'
    """
    dtype = SIGNATURE_DTYPES[name]
    bits = np.dtype(f"u{dtype.itemsize}")

    def rounded(value: Any) -> int:
        with np.errstate(over="ignore"):
            return int(np.asarray(value, np.float64).astype(dtype).view(bits))

    return rounded
