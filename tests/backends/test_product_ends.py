"""Products are computed as far as somebody reads them and as K goes; what that leaves out nobody can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, MASKED: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (N > n[None, :]), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    at = c_ptr + m[:, None] * (tl.num_programs(1) * BN) + n[None, :]
    if MASKED:
        tl.store(at, acc * 2.0, mask=(m[:, None] < M) & (n[None, :] < N))
    else:
        tl.store(at, acc * 2.0)


def run(a: np.ndarray, b: np.ndarray, blocks: tuple[int, int, int], masked: bool, **options: Any) -> np.ndarray:
    """Twice the product, in tiles; what is not stored is -1."""
    (m, k), n = a.shape, b.shape[1]
    grid = -(-m // blocks[0]), -(-n // blocks[1])
    c = np.full((grid[0] * blocks[0], grid[1] * blocks[1]), -1, np.float32)
    matmul[grid](a, b, c, m, n, k, *blocks, MASKED=masked, **options)
    return c


@pytest.mark.parametrize("elem, width", [(np.float32, {}), (np.float32, {"vector_bits": 128}), (np.float16, {})])
def test_sizes_that_blocks_do_not_divide(elem: Any, width: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    for m, n, k in ((33, 40, 17), (65, 31, 70), (5, 63, 129)):
        a, b = (random.integers(-4, 5, shape).astype(elem) for shape in ((m, k), (k, n)))
        expected = 2 * (a.astype(np.float32) @ b.astype(np.float32))
        for blocks in ((32, 32, 32), (16, 128, 16)):
            c = run(a, b, blocks, masked=True, **width)
            np.testing.assert_array_equal(c[:m, :n], expected)
            c[:m, :n] = -1
            assert (c == -1).all()


def test_what_is_stored_beyond_the_masks_of_operands_is_computed() -> None:
    """A row of zeros times infinity is NaN, where it is stored."""
    a, b = np.ones((20, 20), np.float32), np.ones((20, 20), np.float32)
    b[3, 4] = np.inf
    c = run(a, b, (32, 32, 32), masked=False)
    assert np.isnan(c[20:, 4]).all() and np.isposinf(c[:20, 4]).all()
    assert (np.delete(c, 4, 1) == np.pad(np.full((20, 19), 40), ((0, 12), (0, 12)))).all()


@weft.jit
def one_sided(a_ptr, b_ptr, c_ptr, K, first, tops):
    m, k = tl.arange(0, 32), tl.arange(0, 32)
    a = tl.load(a_ptr + m[:, None] * 32 + k[None, :], mask=(first + k[None, :]) < K, other=0.0)
    b = tl.load(b_ptr + k[:, None] * 32 + m[None, :], mask=(first + k[:, None]) < K + 4, other=0.0)
    acc = tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + m[:, None] * 32 + m[None, :], acc, mask=m[:, None] < K)
    tl.store(tops + m, tl.max(acc, axis=0))


def test_zeros_in_one_operand_alone_are_multiplied_and_all_that_read_a_product_count() -> None:
    random = np.random.default_rng(6)
    a, b = (random.integers(-4, 5, (32, 32)).astype(np.float32) for _ in range(2))
    b[12, 7] = np.inf
    k = np.arange(32)
    greatest = np.iinfo(np.int32).max
    for end, first in ((10, 0), (10, -3), (0, 0), (40, 0), (greatest - 10, greatest - 20)):
        c, tops = np.full((32, 32), -1, np.float32), np.zeros(32, np.float32)
        one_sided[(1,)](a, b, c, end, first, tops)
        places = (np.int64(first) + k).astype(np.uint32).astype(np.int32)  # which wrap around
        with np.errstate(invalid="ignore"):
            left, right = np.where(places < end, a, 0), np.where((places < end + 4)[:, None], b, 0)
            product = np.stack([(left[:, i : i + 1] * right[i]) for i in range(32)]).sum(0)
        np.testing.assert_array_equal(c, np.where(k[:, None] < end, product, -1))
        expected = product.max(0)
        kept = ~np.isnan(expected)
        np.testing.assert_array_equal(tops[kept], expected[kept])
