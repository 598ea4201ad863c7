"""Indices along a vector are taken apart by numbers that are no powers of two: most vectors lie within one row."""

from __future__ import annotations

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
@pytest.mark.parametrize("width", [64, 65, 77, 100, 300])
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


def test_another_body_is_told_of() -> None:
    index, table = np.zeros(40, np.int32), np.zeros((20, 100), np.float32)
    bias, out = np.zeros(100, np.float32), np.zeros((40, 100), np.float32)
    for width, others in ((100, 1), (128, 0)):
        kernel = rows.warmup(index, table, bias, out, 4000, WIDTH=width, B=512, grid=(1,))
        assert str(kernel.remarks).count("vectors that lie within one row") == others
