"""Exponentials that are 0 come without an underflow, which costs a processor over a hundred cycles in each vector."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

UNDERFLOW = 0x10

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="the flag is x86's")


@weft.jit
def exp(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@weft.jit
def exp2(x, out, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.exp2(tl.load(x + i)))


def underflows(kernel: Any, value: float, dtype: type, **options: Any) -> tuple[bool, float]:
    """Whether a launch by this thread leaves the flag of underflow, and what it gives."""
    math = ctypes.CDLL(ctypes.util.find_library("m"))
    x, out = np.full(64, value, dtype), np.ones(64, dtype)
    kernel[(1,)](x, out, B=64, **options)
    math.feclearexcept(UNDERFLOW)
    kernel[(1,)](x, out, B=64, **options)
    return bool(math.fetestexcept(UNDERFLOW)), float(out[5])


@pytest.mark.parametrize("kernel", [exp, exp2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{}, {"cpu": "x86-64-v3"}, {"cpu": "x86-64-v2"}], ids=["host", "avx2", "sse"])
def test_of_numbers_far_below(kernel: Any, dtype: type, options: dict[str, Any]) -> None:
    for value in (-np.inf, -1e30, -2000.0):
        assert underflows(kernel, value, dtype, **options) == (False, 0.0)
    flagged, smallest = underflows(kernel, -90.0 if dtype is np.float32 else -740.0, dtype, **options)
    assert smallest > 0 and flagged == (kernel is exp)  # a denormal number, and the flag is one that can be seen
