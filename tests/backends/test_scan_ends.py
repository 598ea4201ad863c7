"""Scans end where what reads them does: the numbers before are those of a scan of all of the tile."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

AVX2 = {"cpu": "x86-64-v3", "features": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+sse4.2", "vector_bits": 256}
SSE2 = {"cpu": "x86-64", "features": "+sse,+sse2", "vector_bits": 128}


@weft.jit
def sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr, REVERSE: tl.constexpr):
    row = tl.program_id(0)
    at = row * n + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < n
    total = tl.cumsum(tl.load(x_ptr + at, mask=mask, other=0), axis=0, reverse=REVERSE)
    tl.store(out_ptr + at, total + total, mask=mask)


@pytest.mark.parametrize("options", [{}, AVX2, SSE2])
@pytest.mark.parametrize("elem", [np.int64, np.float32, np.int8])
@pytest.mark.thinned(3)
def test_rows_that_are_shorter_than_their_tile(elem: Any, options: dict[str, Any]) -> None:
    for n in (1, 33, 129):
        x = np.random.default_rng(n).integers(-3, 4, (3, n)).astype(elem)
        for reverse in (False, True):
            out = np.full((4, n), 77, elem)
            sums[(3,)](x, out, n, BLOCK=256, REVERSE=reverse, **options)
            expected = np.cumsum(x[:, ::-1], 1, elem)[:, ::-1] if reverse else np.cumsum(x, 1, elem)
            np.testing.assert_array_equal(out[:3], 2 * expected)
            assert (out[3] == 77).all()


@weft.jit
def down_and_along(x_ptr, sums_ptr, tops_ptr, quotients_ptr, rows, columns, last_ptr, B: tl.constexpr):
    m, n = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    x = tl.load(x_ptr + m * B + n)
    down = tl.cumsum(x, axis=0)
    tl.store(sums_ptr + m * B + n, down, mask=(m < rows) & (n < columns))
    along = tl.cumsum(x, axis=1)
    tl.store(tops_ptr + m * B + n, along, mask=n < columns)
    tl.store(last_ptr + tl.arange(0, B), tl.max(along, axis=1))
    counted = tl.cumsum(x, axis=1, reverse=True)
    tl.store(quotients_ptr + m * B + n, 1000 // counted, mask=n < columns)


def test_all_that_read_a_scan_count() -> None:
    """A store that ends sooner beside a maximum of all of it, and quotients of what lies beyond."""
    x = np.random.default_rng(2).integers(1, 9, (32, 32)).astype(np.int32)
    down, along, quotients = (np.full((32, 32), -1, np.int32) for _ in range(3))
    last = np.zeros(32, np.int32)
    down_and_along[(1,)](x, down, along, quotients, 7, 11, last, B=32)
    inside = np.arange(32) < 11
    expected = np.cumsum(x, 0)
    np.testing.assert_array_equal(down, np.where((np.arange(32)[:, None] < 7) & inside, expected, -1))
    np.testing.assert_array_equal(along, np.where(inside, np.cumsum(x, 1), -1))
    np.testing.assert_array_equal(last, x.sum(1))
    np.testing.assert_array_equal(quotients, np.where(inside, 1000 // np.cumsum(x[:, ::-1], 1)[:, ::-1], -1))


@weft.jit
def product(a, b):
    return a * b


@weft.jit
def least(a, b):
    return tl.minimum(a, b)


@weft.jit
def of_functions(x_ptr, sums_ptr, products_ptr, least_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(sums_ptr + i, tl.cumsum(x, axis=0))
    tl.store(products_ptr + i, tl.associative_scan(x, 0, product))
    tl.store(least_ptr + i, tl.associative_scan(x, 0, least))


def test_the_first_elements_stay_what_they_are() -> None:
    """The sign of a zero, and NaN, are not lost to what stands for no element."""
    x = np.array([-0.0] * 5 + [np.inf, 1, np.nan, 2, 3, 4, 5, 6, 7, 8, 9], np.float32)
    totals, products, lowest = (np.empty(16, np.float32) for _ in range(3))
    of_functions[(1,)](x, totals, products, lowest, B=16)
    assert np.signbit(totals[:5]).all() and totals[5] == np.inf and np.isnan(totals[7:]).all()
    np.testing.assert_array_equal(np.signbit(products[:5]), [True, False, True, False, True])
    assert np.isnan(products[5:]).all()
    np.testing.assert_array_equal(lowest, np.fmin.accumulate(x))
    assert np.signbit(lowest[:7]).all()
