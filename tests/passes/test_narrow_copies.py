"""Operands of products whose contiguous dimension is narrow: what copies cannot bring ahead is loaded."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def product(A, B, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, K, BK, num_stages=3):
        left = tl.load(A + (at + k)[None, :] * M + m[:, None], mask=(at + k)[None, :] < K, other=0.0)
        right = tl.load(B + n[None, :] * K + (at + k)[:, None], mask=(at + k)[:, None] < K, other=0.0)
        total = tl.dot(left, right.to(left.dtype), total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("warps", [2, 4])
@pytest.mark.parametrize(("kind", "m"), [(ml_dtypes.float8_e5m2, 16), (ml_dtypes.float8_e5m2, 32), (np.float16, 16)])
def test_columns_of_a_few_bytes(kind: type, m: int, warps: int, target: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (256, m)).astype(np.float32).astype(kind), np.ones((64, 256), np.float32).astype(kind)
    out = np.zeros((m, 64), np.float32)
    product[(1,)](a, b, out, 256, M=m, N=64, BK=64, target=target, num_warps=warps)
    np.testing.assert_array_equal(out, a.astype(np.float32).T @ b.astype(np.float32).T)


@weft.jit
def turned_product(A, B, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((N, M), tl.float32)
    for at in tl.range(0, K, BK, num_stages=2):
        left = tl.load(A + m[:, None] * K + (at + k)[None, :], mask=(at + k)[None, :] < K, other=0.0)
        right = tl.load(B + (at + k)[:, None] * N + n[None, :], mask=(at + k)[:, None] < K, other=0.0)
        total = tl.dot(tl.trans(right), tl.trans(left), total)
    tl.store(OUT + n[:, None] * M + m[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize(
    ("kind", "m", "n", "depth"),
    [(np.float32, 4, 128, 16), (ml_dtypes.bfloat16, 4, 16, 32), (ml_dtypes.float8_e5m2, 64, 16, 64), (np.float16, 16, 64, 32)],  # noqa: E501
)  # fmt: skip
def test_turned_tiles_that_are_too_small_for_a_swizzle(kind: type, m: int, n: int, depth: int, target: str) -> None:
    """A buffer without a swizzle has no transposed layout to be seen in."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float32).astype(kind) for s in ((m, 3 * depth), (3 * depth, n)))
    out = np.zeros((n, m), np.float32)
    turned_product[(1,)](a, b, out, 3 * depth, M=m, N=n, BK=depth, target=target)
    np.testing.assert_array_equal(out, (a.astype(np.float32) @ b.astype(np.float32)).T)
