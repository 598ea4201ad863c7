"""Products by tile registers: what they come to, who gets them, and what disturbs them."""

from __future__ import annotations

import dataclasses
import signal
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.cpu import host
from weft.backends.cpu.driver import LoadedKernel
from weft.base import LaunchError
from weft.compiler import host_cpu

BF16 = ml_dtypes.bfloat16
has_tiles = pytest.mark.skipif(not host_cpu().has("amx-bf16"), reason="this processor has no AMX, or is not given it")
OLD = {"cpu": "x86-64-v4", "features": "+avx512f,+avx512vl,+avx512bw,+avx512dq,+avx512cd,+avx2,+fma,+f16c"}
NAMES = {"bf16": "tdpbf16ps", "i8": "tdpbssd"}


@weft.jit
def matmul(
    a, b, c, M, N, K, am, ak, bk, bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, CARRIED: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), c.dtype.element_ty)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(a + m[:, None] * am + k[None, :] * ak, (m[:, None] < M) & (k[None, :] < K), 0)
        y = tl.load(b + k[:, None] * bk + n[None, :] * bn, (k[:, None] < K) & (n[None, :] < N), 0)
        if CARRIED:
            acc = tl.dot(x, y, acc)
        else:
            acc = acc * 2 + tl.dot(x, y)
    tl.store(c + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


def whole(rng: Any, elem: str, *shape: int) -> Any:
    """Numbers whose products and sums are exact."""
    return rng.integers(-8, 9, shape).astype(BF16) if elem == "bf16" else rng.integers(-128, 128, shape, np.int8)


def expected(a: Any, b: Any, block_k: int, carried: bool, wide: Any) -> Any:
    total = np.zeros((a.shape[0], b.shape[1]), wide)
    for k in range(0, a.shape[1], block_k):
        total = total * (1 if carried else 2) + a[:, k : k + block_k].astype(wide) @ b[k : k + block_k].astype(wide)
    return total


BLOCKS = [
    (32, 32, 32, "", True),
    (16, 16, 64, "a", True),
    (16, 128, 64, "b", False),
    (64, 16, 32, "a", False),
    (128, 64, 64, "", False),
    (64, 64, 128, "b", True),
    (32, 64, 16, "", True),
]


@has_tiles
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("elem", ["bf16", "i8"])
def test_products_of_odd_shapes_are_exact(elem: str, block: tuple[int, int, int, str, bool]) -> None:
    rng, wide = np.random.default_rng(3), np.float32 if elem == "bf16" else np.int32
    *size, transposed, carried = block
    a, b = whole(rng, elem, 77, 150), whole(rng, elem, 150, 93)
    x = np.ascontiguousarray(a.T).T if transposed == "a" else a
    y = np.ascontiguousarray(b.T).T if transposed == "b" else b
    c = np.zeros((77, 93), wide)
    strides = [s // x.itemsize for s in (*x.strides, *y.strides)]
    sizes = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), size, strict=True))
    kernel = matmul[-(-77 // block[0]), -(-93 // block[1])](x, y, c, 77, 93, 150, *strides, **sizes, CARRIED=carried)
    np.testing.assert_array_equal(c, expected(a, b, block[2], carried, wide))
    assert (NAMES[elem] in kernel.asm["asm"]) == (block[2] >= (32 if elem == "bf16" else 64))


@weft.jit
def batched(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, m, n, k = (
        tl.arange(0, B)[:, None, None],
        tl.arange(0, M)[None, :, None],
        tl.arange(0, N)[None, None, :],
        tl.arange(0, K),
    )
    x = tl.load(a + i * M * K + m * K + k[None, None, :])
    y = tl.load(b + i * K * N + k[None, :, None] * N + n)
    tl.store(c + i * M * N + m * N + n, tl.dot(x, y))


@has_tiles
def test_batches() -> None:
    rng = np.random.default_rng(4)
    a, b, c = whole(rng, "bf16", 4, 32, 64), whole(rng, "bf16", 4, 64, 32), np.zeros((4, 32, 32), np.float32)
    kernel = batched[(1,)](a, b, c, B=4, M=32, N=32, K=64)
    assert "tdpbf16ps" in kernel.asm["asm"]
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@weft.jit
def once(a, b, c, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(c + i * N + j, tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j)))


@has_tiles
def test_of_fractions_sums_are_close() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((128, 128)).astype(BF16) for _ in range(2))
    by_tiles, c = (np.zeros((128, 128), np.float32) for _ in range(2))
    once[(1,)](a, b, by_tiles, N=128)
    once[(1,)](a, b, c, N=128, matrix_units=False)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    most = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) * 128 * 2**-24
    assert (np.abs(by_tiles - exact) <= most).all() and (np.abs(c - exact) <= most).all()


def test_other_processors_and_matrix_units_off_have_no_tiles() -> None:
    a, b, c = np.ones((64, 64), BF16), np.ones((64, 64), BF16), np.zeros((64, 64), np.float32)
    for options in (OLD, {"matrix_units": False}) if host_cpu().has("avx512f") else ({"matrix_units": False},):
        kernel = once[(1,)](a, b, c, N=64, **options)
        assert "tmm" not in kernel.asm["asm"] and "dpbf16ps" not in kernel.asm["asm"]
        assert (c == 64).all()


def test_denormals_are_kept_without_matrix_units() -> None:
    tiny = np.float32(2**-130).astype(BF16)
    a, b, c = np.full((32, 32), tiny), np.full((32, 32), BF16(4)), np.zeros((32, 32), np.float32)
    once[(1,)](a, b, c, N=32, matrix_units=False)
    assert (c == np.float32(2**-123)).all()


def test_a_system_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    before = host_cpu()
    monkeypatch.setattr(host, "_host", None)
    monkeypatch.setattr(host, "tiles_are_granted", lambda: False)
    refused = host.host_cpu()
    assert not any(name.startswith("amx") for name in refused.features)
    assert (refused.fingerprint() != before.fingerprint()) == before.has("amx-tile")  # so caches know
    assert dataclasses.replace(refused, features=(), feature_string="") == dataclasses.replace(
        before, features=(), feature_string=""
    )


def test_a_kernel_with_tiles_is_not_loaded_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.backends.cpu.driver.tiles_are_granted", lambda: False)
    with pytest.raises(LaunchError, match=r"the kernel k uses tile registers \(AMX\), which"):
        LoadedKernel(b"", {"name": "k", "tiles": True})


@weft.jit
def many(a, b, c, n, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    acc = tl.zeros((N, N), tl.float32)
    for _ in range(n):
        acc = acc * 0 + tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j))
    tl.store(c + i * N + j, acc)


@has_tiles
def test_what_a_signal_runs_may_use_tiles_too() -> None:
    a, b, c, d = np.ones((64, 64), BF16), np.ones((64, 64), BF16), *np.zeros((2, 64, 64), np.float32)
    once[(1,)](a, b, d, N=64)
    seen = []

    def handler(*_: object) -> None:
        once[(1,)](a, b, d, N=64)  # leaves without tiles
        seen.append(1)

    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        many[(1,)](a, b, c, 100_000, N=64)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(seen) > 1 and (c == 64).all()
