"""Products so small that a warp has fewer rows of the result than the largest instruction, on simulated GPUs."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def product(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PARTS):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for _ in range(PARTS):
        a, b = tl.load(x + m[:, None] * K + k[None, :]), tl.load(y + k[:, None] * N + n[None, :])
        total = tl.dot(a, b, total)
    tl.store(out + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize(("m", "n"), [(8, 16), (16, 16), (32, 16), (16, 32)])
def test_small_products(m: int, n: int, warps: int) -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, 16), (16, n)))
    out = np.zeros((m, n), np.float32)
    with weft.target("sim:xpu:pvc"):
        product[(1,)](x, y, out, m, n, 16, 2, num_warps=warps)
    np.testing.assert_allclose(out, 2 * (x.astype(np.float32) @ y.astype(np.float32)), rtol=1e-3, atol=1e-3)
