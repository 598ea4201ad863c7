"""Nested loops around a product as one loop: the same sums, in kernels as users write them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl

SIDE, CHANNELS, FILTERS = 6, 32, 16


@weft.jit
def two_loops(x, w, out, H, W, C: tl.constexpr, F: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """A convolution, 3 by 3, of one image: a loop over taps and one over channels."""
    p, f, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, F), tl.arange(0, BK)
    row, column = p // W, p % W
    acc = tl.zeros((BM, F), tl.float32)
    for tap in range(9):
        r, c = row + tap // 3 - 1, column + tap % 3 - 1
        inside = (r >= 0) & (r < H) & (c >= 0) & (c < W)
        for start in range(0, C, BK):
            a = tl.load(x + ((r * W + c) * C)[:, None] + (start + k)[None, :], mask=inside[:, None], other=0.0)
            acc = tl.dot(a, tl.load(w + (tap * C + start + k)[:, None] * F + f[None, :]), acc)
    tl.store(out + p[:, None] * F + f[None, :], acc, mask=(p < H * W)[:, None])


@weft.jit
def three_loops(x, w, out, H, W, C: tl.constexpr, F: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """The same with one loop for the rows of the filter and one for its columns, from -1 to 1."""
    p, f, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, F), tl.arange(0, BK)
    acc = tl.zeros((BM, F), tl.float32)
    for down in range(-1, 2):
        for right in range(-1, 2):
            r, c = p // W + down, p % W + right
            inside = (r >= 0) & (r < H) & (c >= 0) & (c < W)
            for start in range(0, C, BK):
                a = tl.load(x + ((r * W + c) * C)[:, None] + (start + k)[None, :], mask=inside[:, None], other=0.0)
                place = ((down + 1) * 3 + right + 1) * C + start
                acc = tl.dot(a, tl.load(w + (place + k)[:, None] * F + f[None, :]), acc)
    tl.store(out + p[:, None] * F + f[None, :], acc, mask=(p < H * W)[:, None])


@pytest.mark.parametrize(
    "target", ["sim:cuda:80", "sim:cuda:90", "sim:xpu:pvc", pytest.param("sim:hip:gfx942", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kernel", [two_loops, three_loops], ids=lambda kernel: kernel.fn.__name__)
def test_a_convolution_is_one_loop(kernel: weft.JITFunction, target: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((SIDE, SIDE, CHANNELS)).astype(np.float16)
    w = rng.standard_normal((3, 3, CHANNELS, FILTERS)).astype(np.float16)
    out = np.zeros((SIDE, SIDE, FILTERS), np.float32)
    arguments = (x, w, out, SIDE, SIDE)
    with weft.target(target):
        compiled = kernel[(3,)](*arguments, C=CHANNELS, F=FILTERS, BM=16, BK=16)
    padded = np.pad(x.astype(np.float32), ((1, 1), (1, 1), (0, 0)))
    taps = ((i, j, padded[i : i + SIDE, j : j + SIDE]) for i in range(3) for j in range(3))
    wanted = sum(part @ w[i, j].astype(np.float32) for i, j, part in taps)
    np.testing.assert_allclose(out, wanted, rtol=1e-3, atol=1e-3)
    assert compiled.asm["ttgir"].count("scf.for") == 1
