"""Where products read their operands: in place only where all of them is there by rows."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from fuzz.arrays import Guarded
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
    [(16, 0, 0, (True, False)), (2, 0, 0, (True, True)), (16, 1, 0, (False, False)), (16, 0, 1, (True, False))],
)
def test_loads_by_rows_are_read_in_place(rows: int, wraps: int, masked: int, in_place: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-8, 9, (32, 32)).astype(np.float32) for _ in range(2))
    c = np.zeros((32, 32), np.float32)
    m = 24 if wraps else 32
    kernel = product[32 // rows, 1](a, b, c, m, 32, 32, WRAPS=wraps, MASKED=masked, BM=rows, BN=32)
    np.testing.assert_array_equal(c[:m], (a @ b)[:m])
    assert [r.in_place for r in kernel.remarks.of(remarks.RegisterBlock)] == [in_place]


AVX2 = {"cpu": "x86-64-v3", "features": "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+sse4.2", "vector_bits": 256}
SSE2 = {"cpu": "x86-64", "features": "+sse,+sse2", "vector_bits": 128}


class AtTheEnd:
    """Arrays that end where memory does that may be touched: one byte more is the end of the process."""

    def __init__(self) -> None:
        self.kept: list[mmap.mmap] = []
        self.libc = ctypes.CDLL(None, use_errno=True)

    def put(self, values: Any) -> Any:
        """A copy of an array, before a page that is closed."""
        page = mmap.PAGESIZE
        size = -(-values.nbytes // page) * page
        memory = mmap.mmap(-1, size + page)
        self.kept.append(memory)
        whole = np.frombuffer(memory, np.uint8)
        closed = ctypes.c_void_p(whole.ctypes.data + size)
        assert self.libc.mprotect(closed, ctypes.c_size_t(page), 0) == 0
        array = whole[size - values.nbytes : size].view(values.dtype).reshape(values.shape)
        array[...] = values
        return array


@weft.jit
def masked_product(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), a.dtype.element_ty)
    for first in range(0, K, BK):
        k = tl.arange(0, BK)
        in_k = k < K - first
        left = (m[:, None] < M) & in_k[None, :] if ROWS else in_k[None, :]
        right = in_k[:, None] & (n[None, :] < N) if COLUMNS else in_k[:, None]
        x = tl.load(a + m[:, None] * K + (first + k)[None, :], left, 0)
        y = tl.load(b + (first + k)[:, None] * N + n[None, :], right, 0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("blocks", [(32, 32, 32), (2, 64, 16)])
@pytest.mark.parametrize(
    ("elem", "options"), [(np.float32, {}), (np.float64, {}), (np.float32, AVX2), (np.float32, SSE2)]
)
@pytest.mark.thinned(2)
def test_nothing_beyond_the_end_of_an_operand_is_touched(
    blocks: tuple[int, int, int], elem: Any, options: dict[str, Any]
) -> None:
    rng, memory = np.random.default_rng(7), AtTheEnd()
    for m, n, k in ((33, 41, 17), (7, 31, 129), (64, 41, 17), (33, 64, 17)):
        a = memory.put(rng.integers(-4, 5, (m, k)).astype(elem))
        b = memory.put(rng.integers(-4, 5, (k, n)).astype(elem))
        c = memory.put(np.full((m, n), np.nan, elem))
        grid = -(-m // blocks[0]), -(-n // blocks[1])
        whole = m % blocks[0] == 0, n % blocks[1] == 0
        masks = {"ROWS": not whole[0], "COLUMNS": not whole[1]}
        kernel = masked_product[grid](a, b, c, m, n, k, *blocks, **masks, **options)
        np.testing.assert_array_equal(c, a @ b)
        (block,) = kernel.remarks.of(remarks.RegisterBlock)
        assert block.in_place == (True, blocks[0] < 4)


@weft.jit
def other_ends(a, b, c, M, other, K, other_k, B: tl.constexpr):
    m, k = tl.arange(0, B), tl.arange(0, B)
    x = tl.load(a + m[:, None] * B + k[None, :], (m[:, None] < other) & (k[None, :] < K), 0.0)
    y = tl.load(b + k[:, None] * B + m[None, :], k[:, None] < other_k, 0.0)
    tl.store(c + m[:, None] * B + m[None, :], tl.dot(x, y, input_precision="ieee"), m[:, None] < M)


def test_operands_that_end_elsewhere_are_not_read_in_place() -> None:
    """Ends that are other numbers, whatever these are."""
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-4, 5, (32, 32)).astype(np.float32) for _ in range(2))
    k = np.arange(32)
    for ends in ((20, 12, 7, 7), (12, 20, 7, 9), (20, 20, 9, 7)):
        m, other, depth, other_k = ends
        c = np.full((32, 32), -1, np.float32)
        kernel = other_ends[(1,)](a, b, c, *ends, B=32)
        left, right = a * (k[:, None] < other) * (k < depth), b * (k[:, None] < other_k)
        np.testing.assert_array_equal(c, np.where(k[:, None] < m, left @ right, -1))
        (block,) = kernel.remarks.of(remarks.RegisterBlock)
        assert block.in_place == (False, False)


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


@weft.jit
def product_of_columns_that_wrap(a, b, out, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), (tl.program_id(0) * BN + tl.arange(0, BN)) % N, tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        inside = start + k < K
        left = tl.load(a + m[:, None] * K + start + k[None, :], mask=inside[None, :], other=0.0)
        right = tl.load(b + (start + k)[:, None] * N + n[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(left, right, acc, input_precision="ieee")
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + m[:, None] * BN * tl.num_programs(0) + column[None, :], acc)


@pytest.mark.parametrize("rows", [4, 64])
@pytest.mark.parametrize("size", [(130, 300), (33, 45), (64, 100)])
def test_columns_that_wrap_around_are_read_where_they_are(size: tuple[int, int], rows: int) -> None:
    """All columns are stored, also those behind the last one; and nothing behind the array is read."""
    (k, n), grid = size, -(-size[1] // 128)
    memory = Guarded(4 * k * n, at_end=True)
    b = memory.array(np.dtype(np.float32)).reshape(k, n)
    b[...] = np.arange(k * n).reshape(k, n) % 7 - 3
    a = (np.arange(rows * k).reshape(rows, k) % 5 - 2).astype(np.float32)
    out = np.zeros((rows, 128 * grid), np.float32)
    product_of_columns_that_wrap[(grid,)](a, b, out, k, n, BM=rows, BN=128, BK=32)
    np.testing.assert_array_equal(out, a @ b[:, np.arange(128 * grid) % n])
