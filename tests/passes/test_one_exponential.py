"""What an online softmax scales by, with one exponential: for numbers, infinities and NaN."""

from __future__ import annotations

import numpy as np

import weft
import weft.language as tl

N = 256


@weft.jit
def scales(a, b, left, right, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(a + at), tl.load(b + at)
    most = tl.where((x > y) | (x != x), x, y)
    tl.store(left + at, tl.exp(x - most))
    tl.store(right + at, tl.exp(y - most))


def test_scales_of_all_kinds_of_numbers() -> None:
    special = np.array([0.0, -0.0, 1.0, -87.0, 3e38, np.inf, -np.inf, np.nan], np.float32)
    a, b = (np.tile(x.ravel(), N // special.size**2) for x in np.meshgrid(special, special))
    left, right = np.empty_like(a), np.empty_like(a)
    with weft.target("sim:cuda:90"):
        scales[(1,)](a, b, left, right, N=N)
    assert scales.warmup(a, b, left, right, N=N, grid=(1,), target="cuda:90").asm["ttgir"].count("math.exp") == 1
    with np.errstate(all="ignore"):
        most = np.where((a > b) | np.isnan(a), a, b)
        np.testing.assert_allclose(left, np.exp(a - most), rtol=1e-6)
        np.testing.assert_allclose(right, np.exp(b - most), rtol=1e-6)
