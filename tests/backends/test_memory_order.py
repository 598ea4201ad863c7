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
