"""Products whose rows are looked up, and those of few rows: what tiles are laid out like, and what is copied ahead."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def gathered(X, W, ORDER, OUT, N, K, M: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row = tl.load(ORDER + tl.arange(0, M))
    n, k = tl.arange(0, BN), tl.arange(0, BK)
    left = X + row[:, None] * K + k[None, :]
    right = W + k[:, None] * N + n[None, :]
    total = tl.zeros((M, BN), tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += BK
        right += BK * N
    tl.store(OUT + row[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_rows_that_are_looked_up_are_copied_ahead(target: str) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.integers(-3, 4, (64, 96)).astype(np.float16), rng.integers(-3, 4, (96, 64)).astype(np.float16)
    order, out = rng.permutation(64).astype(np.int32), np.zeros((64, 64), np.float32)
    gathered[(1,)](x, w, order, out, 64, 96, M=64, BN=64, BK=32, target=target)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ w.astype(np.float32))
    kernel = gathered.warmup(x, w, order, out, 64, 96, M=64, BN=64, BK=32, grid=(1,), target=target[4:])
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert loop.count("async_copy_global_to_local") == 2 and "tt.load" not in loop
    assert not re.search(r"convert_layout.*tt\.ptr", kernel.asm["ttgir"])
    copies = re.findall(r"cp\.async\.c[ag].*", kernel.asm["ptx"])
    assert copies and all("0x10," in c or ", 16" in c for c in copies), copies[:1]


@weft.jit
def gathered_along_k(X, W, ORDER, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, K, BK):
        row = tl.load(ORDER + k)[:, None]
        total = tl.dot(tl.load(X + row * M + m[None, :]).T, tl.load(W + row * N + n[None, :]), total)
        k += BK
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("stages", [3, 4])
def test_rows_are_looked_up_first_where_copies_land_early(stages: int) -> None:
    """The wait behind which they were looked up is then gone from the beginning of an iteration."""
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, (256, 64)).astype(np.float16) for _ in range(2))
    order, out = rng.permutation(256).astype(np.int32), np.zeros((64, 64), np.float32)
    args, sizes = (x, w, order, out, 256), {"M": 64, "N": 64, "BK": 64, "num_stages": stages}
    gathered_along_k[(1,)](*args, **sizes, target="sim:cuda:90")
    np.testing.assert_array_equal(out, x.astype(np.float32).T @ w.astype(np.float32))
    kernel = gathered_along_k.warmup(*args, **sizes, grid=(1,), target="cuda:90")
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert loop.index("tt.load") < loop.index("warp_group_dot %") < loop.index("ttg.async_copy_global_to_local")
    assert (loop.index("ttg.async_wait") > loop.index("warp_group_dot %")) is (stages == 4)


@weft.jit
def decoded(Q, K, V, OUT, n, G: tl.constexpr, HEAD: tl.constexpr, BN: tl.constexpr):
    g, d = tl.arange(0, G), tl.arange(0, HEAD)
    q = tl.load(Q + g[:, None] * HEAD + d[None, :])
    acc = tl.zeros((G, HEAD), tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        scores = tl.dot(q, tl.load(K + j[None, :] * HEAD + d[:, None]))
        acc = tl.dot(scores.to(q.dtype), tl.load(V + j[:, None] * HEAD + d[None, :]), acc)
    tl.store(OUT + g[:, None] * HEAD + d[None, :], acc)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_few_rows_are_not_computed_by_every_warp(target: str) -> None:
    """16 rows are one instruction's: the four warps of a chain of products divide its columns."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.integers(-2, 3, (r, 32)).astype(np.float16) for r in (16, 64, 64))
    out = np.zeros((16, 32), np.float32)
    decoded[(1,)](q, k, v, out, 64, G=16, HEAD=32, BN=32, target=target)
    np.testing.assert_array_equal(out, (q.astype(np.float32) @ k.T.astype(np.float32)) @ v.astype(np.float32))
    assert (
        "warpsPerCTA = [1, 4]"
        in re.findall(
            r"#mma = .*",
            decoded.warmup(q, k, v, out, 64, G=16, HEAD=32, BN=32, grid=(1,), target=target[4:]).asm["ttgir"],
        )[0]
    )


@weft.jit
def scaled(X, SCALE, OUT, K, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for step in range(K):
        x = tl.load(X + step * M * N + m[:, None] * N + n[None, :])
        total += x * tl.load(SCALE + n // 64 * K + step, mask=n < N, other=0.0)[None, :]
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_one_address_is_loaded_once(target: str) -> None:
    """A scale for every 64 columns: one load of a thread for all of its columns."""
    rng = np.random.default_rng(0)
    x, scale = rng.integers(-3, 4, (2, 16, 64)).astype(np.float32), rng.integers(1, 5, (1, 2)).astype(np.float32)
    out = np.zeros((16, 64), np.float32)
    scaled[(1,)](x, scale, out, 2, M=16, N=64, target=target)
    np.testing.assert_array_equal(out, (x * scale.reshape(2, 1, 1)).sum(0))
    kernel = scaled.warmup(x, scale, out, 2, M=16, N=64, grid=(1,), target=target[4:])
    assert "convert_layout" not in kernel.asm["ttgir"]
    scales = re.findall(r"ld\.global\.b32", kernel.asm["ptx"])
    assert len(scales) == 1, kernel.asm["ptx"]


@weft.jit
def scaled_product(A, B, SA, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for step in range(K // BK):
        x = tl.load(A + m[:, None] * K + (step * BK + k)[None, :])
        y = tl.load(B + (step * BK + k)[:, None] * N + n[None, :])
        total += tl.dot(x, y) * tl.load(SA + m * (K // BK) + step)[:, None]
    tl.store(OUT + m[:, None] * N + n[None, :], total)


def test_copies_are_begun_while_a_product_goes_on() -> None:
    """The iteration itself uses the product: it is awaited after the copies for later iterations."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((64, 160), (160, 64)))
    scale, out = rng.integers(1, 4, (64, 5)).astype(np.float32), np.zeros((64, 64), np.float32)
    scaled_product[(1,)](a, b, scale, out, 160, M=64, N=64, BK=32, target="sim:cuda:90")
    whole = a.astype(np.float32) * np.repeat(scale, 32, 1)
    np.testing.assert_array_equal(out, whole @ b.astype(np.float32))
    kernel = scaled_product.warmup(a, b, scale, out, 160, M=64, N=64, BK=32, grid=(1,), target="cuda:90")
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    order = ["warp_group_dot %", "copy_global_to_local", "warp_group_dot_wait", "arith.mulf"]
    assert sorted(order, key=loop.index) == order
