"""How many buffers tiles have that are copied ahead: one less than stages, where another block can run with that."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def few_rows(A, B, C, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for s in range(0, K, BK):
        a = tl.load(A + m[:, None] * K + (s + k)[None, :])
        total = tl.dot(a, tl.load(B + n[None, :] * K + (s + k)[:, None]), total, input_precision="ieee")
    tl.store(C + m[:, None] * N + n[None, :], total)


@weft.jit
def widened(A, W, C, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for s in range(0, K, BK):
        a = tl.load(A + m[:, None] * K + (s + k)[None, :])
        w = tl.load(W + (s + k)[:, None] * N + n[None, :])
        total = tl.dot(a, w.to(tl.float16), total)
    tl.store(C + m[:, None] * N + n[None, :], total)


def buffers(kernel: weft.JITFunction, *args: object, **more: object) -> list[int]:
    """The number of buffers of each tile that is copied."""
    text = kernel.warmup(*args, grid=(1,), target="cuda:90", **more).asm["ttgir"]
    return [int(n) for n in re.findall(r"local_alloc : \(\) -> !ttg.memdesc<(\d+)x\d+x\d+x", text)]


def inputs(m: int, n: int, k: int, left: type, right: type, transposed: bool = False) -> list[np.ndarray]:
    """Small integers, and what is written."""
    rng = np.random.default_rng(0)
    b = rng.integers(-3, 4, (n, k) if transposed else (k, n)).astype(right)
    return [rng.integers(-3, 4, (m, k)).astype(left), b, np.zeros((m, n), np.float32)]


@pytest.mark.parametrize(
    ("shape", "elem", "stages", "warps", "count"),
    [
        ((64, 64, 64), np.float32, 3, 4, 2),  # 96 KB: three blocks instead of two
        ((64, 64, 64), np.float32, 3, 8, 3),  # enough warps as it is
        ((32, 32, 16), np.float32, 4, 4, 4),
        ((64, 64, 64), np.float32, 2, 4, 2),  # with one nothing would be ahead
    ],
)
@pytest.mark.thinned(2)
def test_single_multiplications(shape: tuple[int, int, int], elem: type, stages: int, warps: int, count: int) -> None:
    m, n, k = shape
    a, b, c = inputs(m, n, 5 * k, elem, elem, transposed=True)
    more = {"M": m, "N": n, "BK": k, "num_stages": stages, "num_warps": warps}
    assert buffers(few_rows, a, b, c, 5 * k, **more) == [count, count]
    few_rows[(1,)](a, b, c, 5 * k, **more, target="sim:cuda:90")
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.parametrize(
    ("shape", "stages", "warps", "counts"),
    [
        ((64, 128, 64), 4, 4, [3, 2]),  # three blocks with a stage less
        ((128, 128, 64), 3, 8, [3, 2]),
        ((128, 128, 64), 2, 8, [2, 2]),
    ],
)
def test_operands_that_are_stored_again(
    shape: tuple[int, int, int], stages: int, warps: int, counts: list[int]
) -> None:
    """The left one is read by the product itself, which the next iteration begins beside."""
    m, n, k = shape
    a, w, c = inputs(m, n, 5 * k, np.float16, np.int8)
    more = {"M": m, "N": n, "BK": k, "num_stages": stages, "num_warps": warps}
    assert buffers(widened, a, w, c, 5 * k, **more)[:2] == counts
    widened[(1,)](a, w, c, 5 * k, **more, target="sim:cuda:90")
    np.testing.assert_array_equal(c, a.astype(np.float32) @ w.astype(np.float32))
