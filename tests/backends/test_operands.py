"""Where products read their operands: in place only where all of them is there by rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import remarks


@weft.jit
def product(a, b, c, M, N, K, WRAPS: tl.constexpr, MASKED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    rows = m % M if WRAPS else m
    acc = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, 16):
        k = first + tl.arange(0, 16)
        if MASKED:
            x = tl.load(a + rows[:, None] * K + k[None, :], k[None, :] < K, 0)
            y = tl.load(b + k[:, None] * N + n[None, :], k[:, None] < K, 0)
        else:
            x, y = tl.load(a + rows[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], acc, m[:, None] < M)


@pytest.mark.parametrize(
    ("rows", "wraps", "masked", "in_place"),
    [(16, 0, 0, (True, False)), (2, 0, 0, (True, True)), (16, 1, 0, (False, False)), (16, 0, 1, (False, False))],
)
def test_plain_loads_are_read_in_place(rows: int, wraps: int, masked: int, in_place: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, (32, 32)).astype(np.float32) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    m = 24 if wraps else 32
    kernel = product[32 // rows, 1](a, b, c, m, 32, 32, WRAPS=wraps, MASKED=masked, BM=rows, BN=32)
    np.testing.assert_array_equal(c[:m], (a @ b)[:m])
    assert [r.in_place for r in kernel.remarks.of(remarks.RegisterBlock)] == [in_place]


@weft.jit
def in_and_out(a, b, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(a + i * N + j)
    tl.store(a + i * N + j, x * 0)
    y = tl.dot(x, tl.load(b + i * N + j), input_precision="ieee")
    tl.store(b + i * N + j, y)
    tl.store(a + i * N + j, y)


def test_what_is_overwritten_before_the_product_is_not() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-8, 9, (32, 32)).astype(np.float32) for _ in range(2))
    expected: Any = a @ b
    in_and_out[(1,)](a, b, N=32)
    np.testing.assert_array_equal(a, expected)
    np.testing.assert_array_equal(b, expected)


@weft.jit
def one_product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + m * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    tl.store(c + m * N + n[None, :], tl.dot(x, y, input_precision="ieee"))


@pytest.mark.parametrize(("m", "n"), [(1, 128), (2, 64), (4, 64), (8, 128), (16, 32), (32, 128), (64, 16), (128, 64)])
def test_blocks_of_several_heights_cover_all_rows(m: int, n: int) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((m, 64), (64, n)))
    c = np.full((m, n), np.nan, np.float32)
    one_product[(1,)](a, b, c, M=m, N=n, K=64)
    np.testing.assert_array_equal(c, a @ b)
