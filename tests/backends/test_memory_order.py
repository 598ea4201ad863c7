"""What a program writes and reads in memory happens in the order in which it is written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def transposed_with_equal_addresses(out, x, A: tl.constexpr, B: tl.constexpr):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 8)[None, :]
    tl.store(out + i * A + j * B, tl.load(x + i + j * 8))


@pytest.mark.parametrize("processor", [{}, {"vector_bits": 256}, {"vector_bits": 128}])
@pytest.mark.parametrize("strides", [(3, 2), (2, 3), (1, 1), (0, 1), (1, 0), (0, 0), (1, 4), (7, 1)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.int64])
@pytest.mark.thinned(4)
def test_the_last_of_equal_addresses_stays(dtype: Any, strides: tuple[int, int], processor: dict[str, Any]) -> None:
    x = np.arange(64).astype(dtype)
    out = np.full(80, -1, dtype)
    wanted = out.copy()
    for i in range(8):
        for j in range(8):
            wanted[i * strides[0] + j * strides[1]] = x[i + j * 8]
    transposed_with_equal_addresses[(1,)](out, x, *strides, **processor)
    np.testing.assert_array_equal(out, wanted)


@weft.jit
def exchange(memory, out, x, AXIS: tl.constexpr):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 8)[None, :]
    old = tl.atomic_xchg(memory + (i * 0 + j if AXIS else i + j * 0), tl.load(x + i + j * 8))
    tl.store(out + i + j * 8, old)


@pytest.mark.parametrize("axis", [0, 1])
def test_atomics_at_equal_addresses_are_in_order(axis: int) -> None:
    x, out, memory = np.arange(64, dtype=np.int32), np.zeros(64, np.int32), np.full(8, -1, np.int32)
    exchange[(1,)](memory, out, x, axis)
    wanted, left = np.zeros(64, np.int32), np.full(8, -1, np.int32)
    for i in range(8):
        for j in range(8):
            place = j if axis else i
            wanted[i + j * 8], left[place] = left[place], x[i + j * 8]
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(memory, left)


@weft.jit
def sum_beside_a_store(out, total, x):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    v = tl.load(x + i * 16 + j)
    tl.store(out + j + i * 0, v)
    tl.store(total + tl.arange(0, 16), tl.sum(v, 0))


def test_a_reduction_does_not_turn_the_order() -> None:
    x, out, total = np.arange(128, dtype=np.int32)[::-1].copy(), np.zeros(16, np.int32), np.zeros(16, np.int32)
    sum_beside_a_store[(1,)](out, total, x)
    np.testing.assert_array_equal(out, x.reshape(8, 16)[-1])
    np.testing.assert_array_equal(total, x.reshape(8, 16).sum(0))


@weft.jit
def argmax_beside_a_store(memory, out, where, n):
    place = memory + tl.arange(0, 4)[:, None] * n + tl.arange(0, 4)[None, :]
    value = tl.load(place)
    tl.store(place, value + 1)
    column = tl.reshape(value, [16, 1]) * 3.0
    index = tl.argmax(tl.trans(column), 1, keep_dims=True)
    tl.store(out + tl.arange(0, 16)[:, None], column)
    tl.store(where + tl.arange(0, 1)[:, None], index)


def test_a_result_that_nobody_reads_is_written_into_memory_of_its_own() -> None:
    memory = np.array([5, 3, 8, 1, 7, 2, 9, 4, 6, 0, 11, 15, 10, 13, 12, 14], np.float16)
    before, out, where = memory.copy(), np.zeros(16, np.float16), np.zeros(1, np.int32)
    argmax_beside_a_store[(1,)](memory, out, where, 4)
    np.testing.assert_array_equal(out, before * 3)
    np.testing.assert_array_equal(memory, before + 1)
    assert where[0] == 11


@weft.jit
def symmetric(memory, out, narrowed, number, n, m):
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 4)[None, :]
    place = memory + (i * 4 + j) % n
    value = tl.load(place)
    more = value + 1
    bounded = tl.minimum(tl.maximum(more, -64.0), 64.0)
    tl.store(place, bounded)
    product = tl.maximum(bounded, tl.trans(tl.minimum(tl.maximum(bounded, 0.0), 255.0))) * more
    tl.store(out + i * 4 + j, product * product)
    tl.store(number, n)
    tl.store(narrowed + i * m + j, tl.minimum(tl.maximum(product, -64.0), 64.0))


def test_a_buffer_read_at_two_places_is_not_taken_over() -> None:
    memory = np.array([5, 3, 8, 1, 7, 2, 9, 4, 6, 0, 11, 15, 10, 13, 12, 14], np.float64)
    more = memory.reshape(4, 4) + 1
    out, narrowed, number = np.zeros((4, 4)), np.zeros((4, 4)), np.zeros(1, np.int32)
    symmetric[(1,)](memory, out, narrowed, number, 16, 4)
    product = np.maximum(more, more.T) * more
    np.testing.assert_array_equal(out, product * product)
    np.testing.assert_array_equal(narrowed, np.minimum(product, 64))
    np.testing.assert_array_equal(memory.reshape(4, 4), more)


# -- arrays that share memory -----------------------------------------------------------------------------------------


@weft.jit
def move(out, x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


@weft.jit
def move_turned(out, x, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tl.store(out + i * SIZE + j, tl.load(x + j * SIZE + i))


@weft.jit
def move_in_pieces(out, x, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i) + 1)


@weft.jit
def read_after_write(out, y, x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    before = tl.load(y + i)
    tl.store(x + i, before * 2)
    after = tl.load(y + i)
    tl.store(out + i, after - before)


@weft.jit
def swap(x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(x + i, b)
    tl.store(y + i, a)


SHIFTS = [-17, -16, -4, -1, 0, 1, 3, 8, 16, 31]
OPTIONS: list[dict[str, Any]] = [{}, {"vector_bits": 128}, {"assume_no_alias": False}]


def pair(shift: int, n: int, dtype: Any) -> tuple[Any, Any, Any]:
    """An array, and two views of n elements of it, `shift` elements apart."""
    whole = (np.arange(n + 64) * 37 % 101).astype(dtype)
    return whole, whole[32 + shift : 32 + shift + n], whole[32 : 32 + n]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.int64])
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.thinned(4)
def test_a_tile_is_read_before_it_is_written(shift: int, dtype: Any, options: dict[str, Any]) -> None:
    for n in (128, 100):
        whole, out, x = pair(shift, n, dtype)
        wanted = whole.copy()
        wanted[32 + shift : 32 + shift + n] = x + dtype(1)
        move[(1,)](out, x, n, BLOCK=128, **options)
        np.testing.assert_array_equal(whole, wanted)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_turned_tile_is_read_before_it_is_written(shift: int, options: dict[str, Any]) -> None:
    whole, out, x = pair(shift, 256, np.float32)
    wanted = whole.copy()
    wanted[32 + shift : 32 + shift + 256] = x.reshape(16, 16).T.reshape(-1)
    move_turned[(1,)](out, x, SIZE=16, **options)
    np.testing.assert_array_equal(whole, wanted)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_later_piece_reads_what_an_earlier_one_wrote(shift: int, options: dict[str, Any]) -> None:
    whole, out, x = pair(shift, 128, np.int32)
    wanted = whole.copy()
    for start in range(32, 160, 16):
        wanted[start + shift : start + shift + 16] = wanted[start : start + 16] + 1
    move_in_pieces[(1,)](out, x, 128, BLOCK=16, **options)
    np.testing.assert_array_equal(whole, wanted)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shift", SHIFTS)
def test_a_load_after_a_store_sees_it_and_one_before_does_not(shift: int, options: dict[str, Any]) -> None:
    whole, x, y = pair(shift, 64, np.int32)
    before, out = y.copy(), np.zeros(64, np.int32)
    wanted = whole.copy()
    wanted[32 + shift : 96 + shift] = before * 2
    read_after_write[(1,)](out, y, x, BLOCK=64, **options)
    np.testing.assert_array_equal(whole, wanted)
    np.testing.assert_array_equal(out, wanted[32:96] - before)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shift", SHIFTS)
def test_of_two_stores_the_later_stays(shift: int, options: dict[str, Any]) -> None:
    whole, x, y = pair(shift, 64, np.int32)
    a, b, wanted = x.copy(), y.copy(), whole.copy()
    wanted[32 + shift : 96 + shift] = b
    wanted[32:96] = a
    swap[(1,)](x, y, BLOCK=64, **options)
    np.testing.assert_array_equal(whole, wanted)


@weft.jit
def put_back(memory, out, step, n, N: tl.constexpr):
    i = tl.arange(0, N) * step
    place = memory + tl.program_id(0) * N * 3 + i
    first = tl.load(place, mask=i < n)
    tl.store(place, first + 1, mask=i < n)
    second = tl.load(place)
    tl.store(place, first)
    tl.store(out + tl.program_id(0) * N + tl.arange(0, N), second)


@pytest.mark.parametrize("step", [1, 3])
def test_a_load_between_two_stores_to_one_place(step: int) -> None:
    memory, out = np.arange(384, dtype=np.int32), np.zeros((2, 64), np.int32)
    put_back[(2,)](memory, out, step, 1000, 64)
    np.testing.assert_array_equal(memory, np.arange(384))
    np.testing.assert_array_equal(out, [np.arange(64) * step + 1, np.arange(64) * step + 193])


@weft.jit
def counted_rows(memory, out, wide, step, R: tl.constexpr, C: tl.constexpr):
    row = tl.arange(0, R)[:, None] * step
    before = tl.load(memory + row)
    tl.store(memory + row, before + 1)
    tl.store(out + tl.arange(0, R)[:, None], tl.reshape(before, [R, 1]) + 0)
    tl.store(wide + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :], before + tl.arange(0, C)[None, :])


@pytest.mark.parametrize("rows", [1, 16])
def test_one_for_many_neighbours_is_what_was_there_before_it_was_stored_over(rows: int) -> None:
    memory, out, wide = np.arange(rows * 3, dtype=np.int32), np.zeros(rows, np.int32), np.zeros((rows, 32), np.int32)
    counted_rows[(1,)](memory, out, wide, 3, R=rows, C=32)
    before = np.arange(rows) * 3
    np.testing.assert_array_equal(memory[::3], before + 1)
    np.testing.assert_array_equal(out, before)
    np.testing.assert_array_equal(wide, before[:, None] + np.arange(32))


@weft.jit
def two_places(out, step, first):
    i = tl.arange(100, 102)
    counted = tl.gather((i + 3).to(tl.int1), i & 1, 0)
    tl.store(out + tl.arange(0, 8), tl.histogram(tl.arange(0, 2) * step + first, 8, mask=counted))


@pytest.mark.parametrize(("step", "first"), [(3, 16), (3, 2), (0, 7), (1, 7)])
def test_a_histogram_of_two(step: int, first: int) -> None:
    out = np.full(8, -1, np.int32)
    two_places[(1,)](out, step, first)
    np.testing.assert_array_equal(out, [int(first == b) + int(first + step == b) for b in range(8)])


@weft.jit
def columns(x, first, second, n, WIDTH: tl.constexpr, STRIDE: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    place = i % WIDTH + i // WIDTH * STRIDE
    a, b = tl.load(x + i, i < n), tl.load(first + place, i < n)
    tl.store(first + place, a, i < n)
    tl.store(second + place, a + b, i < n)


@weft.jit
def halves(x, out, n, WIDTH: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    place = i % WIDTH + i // WIDTH * 2 * WIDTH
    tl.store(out + place, tl.load(x + i, i < n), i < n)
    tl.store(out + WIDTH + place, -tl.load(x + i, i < n), i < n)


@pytest.mark.parametrize("distance", [40, 41, 60, 80, 20, 39, 81, 100, 0, -40, -60, -20])
def test_columns_of_one_buffer(distance: int) -> None:
    """They overlap as ranges of memory; from 40 to 80 elements apart they do not meet. Later launches are native."""
    n, width, stride = 10 * 40, 40, 120
    place = np.arange(n) % width + np.arange(n) // width * stride
    x = np.arange(n, dtype=np.float32)
    for _ in range(6):
        buffer = np.arange(1600, dtype=np.float32) * 1000
        expected, start = buffer.copy(), 160
        added = x + expected[start + place]
        expected[start + place] = x
        expected[start + distance + place] = added
        first, second = buffer[start : start + 1240], buffer[start + distance : start + distance + 1240]
        columns[(1,)](x, first, second, n, WIDTH=width, STRIDE=stride, B=512)
        np.testing.assert_array_equal(buffer, expected)


def test_columns_need_no_variant_for_arrays_that_overlap() -> None:
    x, out = np.zeros(400, np.float32), np.zeros((10, 120), np.float32)
    kernel = columns.warmup(x, out, out, 400, WIDTH=40, STRIDE=120, B=512, grid=(1,))
    assert [1, 2, 1, 480, -159, 318] in kernel.metadata.alias_pairs
    assert "may store where these do" not in str(halves.warmup(x, out, 400, WIDTH=40, B=512, grid=(1,)).remarks)


@weft.jit
def columns_of_heads(x, first, second, D: tl.constexpr, N: tl.constexpr, H: tl.constexpr, B: tl.constexpr):
    """The halves of each head, where a head has all rows before the next head."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    row, head = i // (D * H) % N, i // D % H
    there = i % D + 2 * D * row + 2 * D * N * head + 2 * D * N * H * (i // (D * H * N))
    tl.store(first + there, tl.load(x + i))
    tl.store(second + there, tl.load(x + i) * 2)


def test_columns_whose_rows_are_taken_in_another_order() -> None:
    """Heads come first in memory and last in the index: rows of 64 bytes of which each array has one half."""
    x, out = np.arange(2 * 3 * 4 * 16, dtype=np.float32), np.zeros((2, 4, 3, 2, 16), np.float32)
    flat = out.reshape(-1)
    kernel = columns_of_heads.warmup(x, flat, flat[16:], D=16, N=3, H=4, B=128, grid=(3,))
    assert [1, 2, 1, 128, -63, 126] in kernel.metadata.alias_pairs
    columns_of_heads[(3,)](x, flat, flat[16:], D=16, N=3, H=4, B=128)
    halves = x.reshape(2, 3, 4, 16).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(out, np.stack((halves, halves * 2), 3))


def test_columns_that_one_parameter_gives() -> None:
    x, out = np.arange(400, dtype=np.float32), np.zeros((10, 80), np.float32)
    halves[(1,)](x, out, 400, WIDTH=40, B=512)
    np.testing.assert_array_equal(out, np.concatenate((x.reshape(10, 40), -x.reshape(10, 40)), 1))


@weft.jit
def momentum(p, g, m, new_m, new_p, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x, v = tl.load(p + i, i < n), tl.load(m + i, i < n) * 0.5 + tl.load(g + i, i < n)
    tl.store(new_m + i, v, i < n)
    tl.store(new_p + i, x - v, i < n)


def test_an_update_in_place_is_the_kernel_for_arrays_apart() -> None:
    p, g, m = (np.arange(300, dtype=np.float32) * k for k in (1, 2, 4))
    kernel = momentum.warmup(p, g, m, m.copy(), p.copy(), 300, B=128, grid=(1,))
    assert not any(strict for _, _, strict, *_ in kernel.metadata.alias_pairs)
    v = m * 0.5 + g
    expected = v, p - v
    momentum[(3,)](p, g, m, m, p, 300, B=128)
    np.testing.assert_array_equal(np.stack((m, p)), np.stack(expected))
