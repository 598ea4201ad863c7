"""Clamps and extremes as Inductor writes them: comparisons that let NaN pass."""

from __future__ import annotations

import numpy as np

import weft
import weft.language as tl

N = 128


@weft.jit
def _larger(a, b):
    return tl.where((a > b) | (a != a), a, b)


@weft.jit
def clamped(x, out, most, N: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at)
    low = tl.where((value > -127.0) | (value != value), value, -127.0)
    high = tl.where((low < 127.0) | (low != low), low, 127.0)
    tl.store(out + at, high)
    tl.store(most + tl.program_id(0), tl.reduce(high, 0, _larger))


def test_nan_passes() -> None:
    x = np.linspace(-300, 300, N, dtype=np.float32)
    for special in (0.0, np.inf, -np.inf, np.nan):
        x[17] = special
        out, most = np.empty_like(x), np.empty(1, np.float32)
        with weft.target("sim:cuda:90"):
            clamped[(1,)](x, out, most, N=N)
        np.testing.assert_array_equal(out, np.clip(x, -127, 127))
        np.testing.assert_array_equal(most, np.max(out))
    text = clamped.warmup(x, out, most, N=N, grid=(1,), target="cuda:90").asm["ttgir"]
    assert text.count("arith.maximumf") == 2
    assert text.count("arith.minimumf") == 1
    assert "arith.select" not in text
