"""Products with quantised weights: scales and zeros are rows that are copied ahead, and loaded as they are spread."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def nibbles(X, W, SCALE, ZERO, OUT, N, K, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLAT: tl.constexpr):
    """Eight weights of 4 bits in a word along K, a scale and a zero for every BK rows of a column."""
    m, n, k = tl.arange(0, M), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    shift = (k % 8 * 4)[:, None]
    total = tl.zeros((M, BN), tl.float32)
    for step in range(K // BK):
        x = tl.load(X + m[:, None] * K + (step * BK + k)[None, :])
        words = tl.load(W + ((step * BK + k) // 8)[:, None] * N + n[None, :])
        if FLAT:
            scale = tl.load(SCALE + step * N + n)[None, :]
            zero = tl.load(ZERO + step * N + n, mask=n < N, other=0.0)[None, :]
        else:
            scale = tl.load(SCALE + step * N + n[None, :])
            zero = tl.load(ZERO + step * N + n[None, :], mask=n[None, :] < N, other=0.0)
        weights = ((words >> shift & 15).to(tl.float16) - zero) * scale
        total = tl.dot(x, weights, total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


def arguments(m: int, n: int, k: int, group: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, (m, k)).astype(np.float16)
    words = rng.integers(-(1 << 31), 1 << 31, (k // 8, n)).astype(np.int32)
    scale = rng.choice([0.25, 0.5, 1.0], (k // group, n)).astype(np.float16)
    zero = rng.integers(0, 16, (k // group, n)).astype(np.float16)
    whole = (words[:, None, :] >> np.arange(0, 32, 4)[None, :, None] & 15).reshape(k, n)
    weights = (whole - np.repeat(zero, group, 0)) * np.repeat(scale, group, 0)
    return [x, words, scale, zero], x.astype(np.float32) @ weights.astype(np.float32)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize(("m", "warps", "stages"), [(64, 4, 3), (128, 8, 2)])
@pytest.mark.thinned(3)
def test_scales_are_copied_ahead(m: int, warps: int, stages: int, target: str, flat: bool) -> None:
    (x, words, scale, zero), wanted = arguments(m, 128, 160, 32)
    out = np.zeros_like(wanted)
    arrays, options = (x, words, scale, zero, out), {"num_warps": warps, "num_stages": stages, "target": target}
    nibbles[(2,)](*arrays, 128, 160, M=m, BN=64, BK=32, FLAT=flat, **options)
    np.testing.assert_array_equal(out, wanted)
    kernel = nibbles.warmup(
        *arrays, 128, 160, M=m, BN=64, BK=32, FLAT=flat, grid=(2,), **options | {"target": target[4:]}
    )
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert loop.count("ttg.async_copy_global_to_local") == 4, loop
    assert "tt.load" not in loop and "ttg.convert_layout %scale" not in loop
    if target == "sim:cuda:90":  # the product goes on while the next iteration unpacks its weights
        order = [
            name for name in ("ttg.local_store", "warp_group_dot_wait", "isAsync", "ttg.async_copy") if name in loop
        ]
        assert len(order) == 4 and order == sorted(order, key=loop.index)
        assert "memdesc<2x32x64xf16" in kernel.asm["ttgir"]


@weft.jit
def row_of_a_tile(X, ROW, OUT, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(ROW + n)
    x = tl.load(X + m[:, None] * N + n[None, :])
    tl.store(OUT + m[:, None] * N + n[None, :], x * row[None, :])


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_a_row_is_loaded_as_it_is_spread(target: str) -> None:
    """Every warp loads the row for itself: nothing goes through shared memory."""
    rng = np.random.default_rng(0)
    x, row = rng.standard_normal((64, 128), np.float32), rng.standard_normal(128, np.float32)
    out = np.zeros_like(x)
    row_of_a_tile[(1,)](x, row, out, M=64, N=128, target=target)
    np.testing.assert_array_equal(out, x * row)
    kernel = row_of_a_tile.warmup(x, row, out, M=64, N=128, grid=(1,), target=target[4:])
    assert "convert_layout" not in kernel.asm["ttgir"]
