"""Loops whose tiles are loaded ahead, and short loops that are written out: right for every number of iterations."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def running_sums(x, out, n, BLOCK: tl.constexpr):
    """Sums of what stands before, in blocks."""
    before = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        tile = tl.load(x + at, at < n, other=0.0)
        tl.store(out + at, before + tl.cumsum(tile, 0), at < n)
        before += tl.sum(tile)


@weft.jit
def in_place(x, n, BLOCK: tl.constexpr):
    """Each block gets the sum of the one before it: a load must not pass a store."""
    for start in range(0, n - BLOCK, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total = tl.sum(tl.load(x + at))
        tl.store(x + at + BLOCK, tl.load(x + at + BLOCK) + total)


@weft.jit
def handed_on(x, y, n, BLOCK: tl.constexpr):
    """The same through two arguments that are one array."""
    for start in range(0, n - BLOCK, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total = tl.sum(tl.load(x + at))
        tl.store(y + at + BLOCK, tl.load(y + at + BLOCK) + total)


@weft.jit
def two_passes(x, out, N: tl.constexpr, BLOCK: tl.constexpr):
    """A row less its mean, in known iterations."""
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + tl.program_id(0) * N + at, at < N, other=0.0)
    mean = tl.sum(total) / N
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + tl.program_id(0) * N + at, at < N, other=0.0)
        tl.store(out + tl.program_id(0) * N + at, value - mean, at < N)


@pytest.mark.parametrize("n", [0, 1, 128, 129, 1000])
def test_running_sums(n: int) -> None:
    x, out = np.arange(n + 1, dtype=np.float32) % 7, np.zeros(n + 1, np.float32)
    running_sums[(1,)](x, out, n, BLOCK=128, target="sim:cuda:90")
    np.testing.assert_array_equal(out[:n], np.cumsum(x[:n]))
    assert out[n] == 0


@pytest.mark.parametrize("kernel", [in_place, handed_on])
def test_a_load_does_not_pass_a_store(kernel: weft.JITFunction) -> None:
    x = np.arange(512, dtype=np.float32) % 5
    wanted = x.copy().reshape(4, 128)
    for i in range(3):
        wanted[i + 1] += wanted[i].sum()
    kernel[(1,)](*[x] * (len(kernel.arg_names) - 2), 512, BLOCK=128, target="sim:cuda:90")
    np.testing.assert_array_equal(x, wanted.reshape(-1))


@pytest.mark.parametrize(("n", "unrolled"), [(200, True), (256, True), (250, True), (128, False), (4000, False)])
def test_two_passes(n: int, unrolled: bool) -> None:
    x, out = np.arange(2 * n, dtype=np.float32).reshape(2, n) % 8, np.zeros((2, n), np.float32)
    two_passes[(2,)](x, out, n, BLOCK=128, target="sim:cuda:90")
    np.testing.assert_allclose(out, x - x.mean(1, keepdims=True), rtol=1e-6, atol=1e-6)
    kernel = two_passes.warmup(x, out, n, BLOCK=128, grid=(2,), target="cuda:90")
    assert any("same time" in str(remark) for remark in kernel.remarks) == unrolled
