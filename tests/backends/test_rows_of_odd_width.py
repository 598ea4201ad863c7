"""Indices along a vector are taken apart by numbers that are no powers of two: most vectors lie within one row."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

PROCESSORS: list[dict[str, Any]] = [{}, {"vector_bits": 256}, {"vector_bits": 128}]


@weft.jit
def rows(index, table, bias, out, n, WIDTH: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    row = tl.load(index + i // WIDTH, inside, other=0)
    value = tl.load(table + row * WIDTH + i % WIDTH, inside) + tl.load(bias + i % WIDTH, inside)
    tl.store(out + i, value, inside)


@weft.jit
def from_anywhere(start, table, out, WIDTH: tl.constexpr, B: tl.constexpr):
    """The index may be negative, and may wrap around; what is left of it is from 1 - WIDTH to WIDTH - 1."""
    i = start + tl.arange(0, B)
    tl.store(out + tl.arange(0, B), tl.load(table + WIDTH + i % WIDTH) + tl.load(table + (i // WIDTH) * 0))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("width", [8, 20, 40, 64, 65, 77, 100, 300])
@pytest.mark.thinned(3)
def test_rows(width: int, processor: dict[str, Any]) -> None:
    random = np.random.default_rng(width)
    index, table = random.integers(0, 20, 40), random.integers(-9, 9, (20, width)).astype(np.float32)
    bias, out = random.integers(-9, 9, width).astype(np.float32), np.zeros((40, width), np.float32)
    rows[(-(-40 * width // 512),)](index, table, bias, out, 40 * width - 3, WIDTH=width, B=512, **processor)
    expected = table[index] + bias
    expected.reshape(-1)[-3:] = 0
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_indices_below_zero_and_beyond_the_largest(processor: dict[str, Any]) -> None:
    table, out = np.arange(2 * 77, dtype=np.float32), np.zeros(256, np.float32)
    for start in (0, -100, -256, 1 << 30, (1 << 31) - 100, (1 << 31) - 16, -(1 << 31)):
        from_anywhere[(1,)](start, table, out, WIDTH=77, B=256, **processor)
        i = (np.int64(start) + np.arange(256)).astype(np.int32).astype(np.int64)
        np.testing.assert_array_equal(out, table[77 + np.fmod(i, 77)] + table[0], err_msg=f"from {start}")


@weft.jit
def from_the_largest(out, B: tl.constexpr):
    """All but the first wrap around, and the compiler knows where they begin."""
    tl.store(out + tl.arange(0, B), ((tl.arange(0, B) + 2147483647) % 100) & 7)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_numbers_that_wrap_are_no_indices(processor: dict[str, Any]) -> None:
    out = np.zeros(64, np.int32)
    from_the_largest[(1,)](out, B=64, **processor)
    numbers = (np.arange(64) + 2147483647).astype(np.int32).astype(np.int64)
    np.testing.assert_array_equal(out, np.fmod(numbers, 100) & 7)


def test_another_body_is_told_of() -> None:
    index, table = np.zeros(40, np.int32), np.zeros((20, 100), np.float32)
    bias, out = np.zeros(100, np.float32), np.zeros((40, 100), np.float32)
    for width, others in ((100, 1), (128, 0)):
        kernel = rows.warmup(index, table, bias, out, 4000, WIDTH=width, B=512, grid=(1,))
        assert str(kernel.remarks).count("along rows of 100 elements") == others


@weft.jit
def columns(x, out, n, WIDTH: tl.constexpr, STRIDE: tl.constexpr, B: tl.constexpr):
    """Write rows into the columns of a wider array."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i % WIDTH + i // WIDTH * STRIDE, tl.load(x + i, i < n) + 1, i < n)


@weft.jit
def images(x, bias, out, n, C: tl.constexpr, H: tl.constexpr, W: tl.constexpr, B: tl.constexpr):
    """Rows of rows, turned upside down, with their channels in another order."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    w, h, c, image = i % W, i // W % H, i // (W * H) % C, i // (W * H * C)
    there = w + W * (H - 1 - h) + W * H * (C - 1 - c) + W * H * C * image
    tl.store(out + i, tl.load(x + there, i < n) + tl.load(bias + c, i < n), i < n)


@weft.jit
def sums(x, weight, out, n, ROWS: tl.constexpr, WIDTH: tl.constexpr, B: tl.constexpr, R: tl.constexpr):
    """Sums over the rows of matrices, an index for the matrices' columns."""
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    total = tl.zeros([B, R], tl.float32)
    for start in range(0, ROWS, R):
        r = start + tl.arange(0, R)[None, :]
        inside = (i < n) & (r < ROWS)
        scale = tl.load(weight + r + ROWS * (i // WIDTH), inside, other=0)
        total += tl.load(x + i % WIDTH + WIDTH * r + ROWS * WIDTH * (i // WIDTH), inside, other=0) * scale
    tl.store(out + i, tl.sum(total, 1)[:, None], i < n)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(
    ("width", "dtype"),
    [(17, np.float32), (13, np.float32), (5, np.float32), (40, np.int8), (33, np.float16), (100, np.int64)],
)
def test_rows_within_wider_rows(width: int, dtype: type, processor: dict[str, Any]) -> None:
    x, out = np.arange(21 * width).reshape(21, width).astype(dtype), np.full((21, width + 13), 7, dtype)
    columns[(-(-21 * width // 128),)](x, out, 21 * width - 2, WIDTH=width, STRIDE=width + 13, B=128, **processor)
    expected = np.full_like(out, 7)
    expected[:, :width] = x + dtype(1)
    expected[-1, width - 2 : width] = 7
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("sizes", [(3, 5, 30), (2, 7, 7), (4, 3, 28), (3, 5, 64), (2, 3, 96), (1, 4, 32)])
@pytest.mark.thinned(4)
def test_rows_of_rows(sizes: tuple[int, int, int], processor: dict[str, Any]) -> None:
    c, h, w = sizes
    x = np.arange(5 * c * h * w, dtype=np.float32).reshape(5, c, h, w)
    bias, out = np.arange(c, dtype=np.float32) * 1000, np.zeros_like(x)
    for block in (64, 256):
        images[(-(-x.size // block),)](x, bias, out, x.size, C=c, H=h, W=w, B=block, **processor)
        np.testing.assert_array_equal(out, x[:, ::-1, ::-1] + bias[None, :, None, None])


@weft.jit
def heads(x, out, first, n, N: tl.constexpr, H: tl.constexpr, D: tl.constexpr, B: tl.constexpr):
    """The heads of each token side by side, from some element on, which need not be the first of a row."""
    i = first + tl.program_id(0) * B + tl.arange(0, B)
    place = i % (H * D)
    there = place % D + D * (i // (H * D) % N) + D * N * (place // D) + H * D * N * (i // (H * D * N))
    tl.store(out + i, tl.load(x + there, i < n), i < n)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("sizes", [(12, 64), (7, 48)])
def test_rows_in_rows(sizes: tuple[int, int], processor: dict[str, Any]) -> None:
    h, d = sizes
    x = np.arange(2 * h * 5 * d, dtype=np.float32).reshape(2, h, 5, d)
    for first in (0, 16, 5):
        out = np.full((2, 5, h, d), -1, np.float32)
        heads[(-(-x.size // 512),)](x, out, first, x.size, N=5, H=h, D=d, B=512, **processor)
        expected = x.transpose(0, 2, 1, 3).copy()
        expected.reshape(-1)[:first] = -1
        np.testing.assert_array_equal(out, expected)


@weft.jit
def scaled_sums(x, weight, bias, out, n, ROWS: tl.constexpr, WIDTH: tl.constexpr, B: tl.constexpr, R: tl.constexpr):
    """Sums of columns: a weight for each row of a matrix, which is the same all along it, and a bias for the matrix."""
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    r = tl.arange(0, R)[None, :]
    matrix, place = i // WIDTH, i % WIDTH
    scale = tl.load(weight + r + ROWS * matrix, (r < ROWS) & (i < n), other=0)
    value = tl.load(x + place + WIDTH * (r + ROWS * matrix), (r < ROWS) & (i < n), other=0) * scale
    total = tl.sum(tl.where((r < ROWS) & (i < n), value, 0), 1)[:, None]
    tl.store(out + i, total + tl.load(bias + matrix, i < n), i < n)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("width", "height"), [(20, 7), (33, 21), (100, 5)])
@pytest.mark.thinned(3)
def test_what_is_the_same_along_a_row(width: int, height: int, processor: dict[str, Any]) -> None:
    random = np.random.default_rng(width)
    x = random.integers(-9, 9, (6, height, width)).astype(np.float32)
    weight, bias = (random.integers(-9, 9, shape).astype(np.float32) for shape in ((6, height), (6,)))
    expected = (x * weight[..., None]).sum(1) + bias[:, None]
    for block in (16, 64, 128):
        out = np.zeros((6, width), np.float32)
        grid = (-(-6 * width // block),)
        scaled_sums[grid](x, weight, bias, out, 6 * width, ROWS=height, WIDTH=width, B=block, R=32, **processor)
        np.testing.assert_array_equal(out, expected)


def test_the_row_of_an_index_is_found_once_for_a_row() -> None:
    """A loop over the vectors of a row is in one over rows: what the innermost one counts is not divided."""
    x = np.zeros(2 * 12 * 5 * 64, np.float32)
    for width, size, loops in ((128, 512, 2), (768, 256, 1)):  # four rows, and part of one
        kernel = images.warmup(x, x, x, x.size, C=3, H=5, W=width, B=size, grid=(1,), cpu="x86-64-v4")
        body = kernel.asm["llir"].split("then", 2)[2].split("store")[0]
        counters = re.findall(r"(%r\d+) = phi i64", body)
        assert len(counters) == loops
        inner = re.findall(rf"(%v\d+) = shl nuw nsw i64 {counters[-1]},", body)
        assert not any(f"div i32 {name}" in body for name in inner)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("width", [20, 75])
def test_rows_in_a_reduction(width: int, processor: dict[str, Any]) -> None:
    random = np.random.default_rng(width)
    x = random.integers(-9, 9, (6, 10, width)).astype(np.float32)
    weight, out = random.integers(-9, 9, (6, 10)).astype(np.float32), np.zeros((6, width), np.float32)
    sums[(-(-6 * width // 32),)](x, weight, out, 6 * width, ROWS=10, WIDTH=width, B=32, R=4, **processor)
    np.testing.assert_array_equal(out, (x * weight[:, :, None]).sum(1))


@weft.jit
def sums_of_some(x, chosen, out, n, ROWS: tl.constexpr, WIDTH: tl.constexpr, B: tl.constexpr):
    """Sums of columns, of those rows that are chosen: a byte for each row, which no vector reads."""
    i = (tl.program_id(0) * B + tl.arange(0, B))[:, None]
    matrix, place = i // WIDTH, i % WIDTH
    total = tl.zeros((B, 4), tl.float32)
    for first in range(0, ROWS, 4):
        r = first + tl.arange(0, 4)[None, :]
        inside = (r < ROWS) & (i < n)
        weight = tl.load(chosen + r + ROWS * matrix, inside, other=0).to(tl.float32)
        value = tl.load(x + place + WIDTH * (r + ROWS * matrix), inside, other=0) * weight
        total = tl.where(inside, total + value, total)
    tl.store(out + i, tl.sum(total, 1)[:, None], i < n)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("width", "height"), [(20, 7), (75, 10), (300, 13)])
@pytest.mark.thinned(3)
def test_bytes_that_are_the_same_along_a_row(width: int, height: int, processor: dict[str, Any]) -> None:
    random = np.random.default_rng(width)
    x = random.integers(-9, 9, (6, height, width)).astype(np.float32)
    chosen, out = random.integers(0, 2, (6, height)).astype(np.int8), np.zeros((6, width), np.float32)
    grid = (-(-6 * width // 64),)
    sums_of_some[grid](x, chosen, out, 6 * width, ROWS=height, WIDTH=width, B=64, **processor)
    np.testing.assert_array_equal(out, (x * chosen[..., None]).sum(1))


def test_bytes_do_not_keep_a_nest_from_following_rows() -> None:
    """AVX2 has no masks for bytes, and these need none."""
    x, chosen = np.zeros((6, 10, 75), np.float32), np.zeros((6, 10), np.int8)
    kernel = sums_of_some.warmup(x, chosen, x, 450, ROWS=10, WIDTH=75, B=64, cpu="x86-64-v3", grid=(1,))
    assert "umin.i64" in kernel.asm["llir"]  # of how much is left of a row, and of the tile


@weft.jit
def looked_up(index, factor, table, out, n, WIDTH: tl.constexpr, B: tl.constexpr):
    """What is asserted is the same all along a row, and is not: nobody asks about lanes behind the end of one."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    inside = i < n
    row = tl.load(index + i // WIDTH, inside, other=0)
    tl.device_assert((row < 20) | ~inside, "row")
    scale = tl.load(factor + i, inside, other=0)
    tl.device_assert((scale != 0) | ~inside, "scale")
    tl.store(out + i, tl.load(table + row * WIDTH + i % WIDTH, inside) * scale, inside)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("width", [20, 65, 77])
@pytest.mark.thinned(3)
def test_assertions_along_rows(width: int, processor: dict[str, Any]) -> None:
    index, table = np.arange(15), np.random.default_rng(width).integers(-9, 9, (20, width)).astype(np.float32)
    factor, out = np.full((15, width), 3, np.int32), np.zeros((15, width), np.float32)

    def launch() -> None:
        grid = (-(-15 * width // 128),)
        looked_up[grid](index, factor, table, out, 15 * width - 2, WIDTH=width, B=128, debug=True, **processor)

    factor[-1, -2:] = 0  # beyond the mask
    launch()
    expected = table[index] * 3
    expected[-1, -2:] = 0
    np.testing.assert_array_equal(out, expected)
    for array, at, name in ((index, (7,), "row"), (factor, (3, width - 1), "scale"), (factor, (9, 5), "scale")):
        old, place = array[at], at[0] * width + (at[1] if len(at) > 1 else 0)
        array[at] = 20 if name == "row" else 0
        where = rf"{name}[^?]*program \({place // 128}, 0, 0\)[^?]*position \[{place % 128}\]"
        with pytest.raises(weft.DeviceAssertionError, match=where):
            launch()
        array[at] = old


def test_rows_are_read_and_written_by_whole_vectors() -> None:
    """Two vectors under masks, not a gather or scatter."""
    x, out = np.zeros((20, 40), np.float32), np.zeros((20, 60), np.float32)
    kernel = columns.warmup(x, out, 800, WIDTH=40, STRIDE=60, B=128, vector_bits=256, cpu="x86-64-v3", grid=(1,))
    assert "scatter" not in kernel.asm["llir"]
    kernel = images.warmup(x, x[0], out, 800, C=2, H=10, W=40, B=128, vector_bits=256, cpu="x86-64-v3", grid=(1,))
    assert "gather" not in kernel.asm["llir"]


@weft.jit
def loaded_along_the_other_axis(x, out, mask_from, WIDE: tl.constexpr):
    """The first axis is contiguous in `x` and the last in `out`, so that blocks are loaded along one and transposed."""
    a, b, c = tl.arange(0, 8)[:, None, None], tl.arange(0, 8)[None, :, None], tl.arange(0, 16)[None, None, :]
    i = (a + b * 8 + (c * 64).to(WIDE)) % 1024
    value = tl.load(x + i, mask=c >= mask_from, other=-7)
    tl.store(out + a * 128 + b * 16 + c, value)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("wide", [tl.int32, tl.int64])
@pytest.mark.parametrize("type", [np.int16, np.float32, np.int64])
@pytest.mark.thinned(4)
def test_an_index_that_is_divided_in_blocks_that_are_transposed(
    type: Any, wide: Any, processor: dict[str, Any]
) -> None:
    x, out = np.arange(1024).astype(type), np.zeros(1024, type)
    loaded_along_the_other_axis[(1,)](x, out, 7, WIDE=wide, **processor)
    c, b, a = np.unravel_index(np.arange(1024), (16, 8, 8))
    expected = np.where(c >= 7, x, -7)[np.lexsort((c, b, a))]
    np.testing.assert_array_equal(out, expected)
