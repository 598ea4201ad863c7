"""Rows at addresses that are loaded: one index for many neighbours is loaded again, not kept for each of them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def flat(index, table, out, WIDTH: tl.constexpr, B: tl.constexpr):
    """As PyTorch's Inductor writes an embedding; the assertion stands in loops of its own."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.load(index + i // WIDTH)
    row = tl.where(row < 0, row + 50, row)
    tl.device_assert((row >= 0) & (row < 50), "index out of bounds")
    tl.store(out + i, tl.load(table + row * WIDTH + i % WIDTH) * 2)


@weft.jit
def normalised(index, table, out, WIDTH: tl.constexpr, X: tl.constexpr):
    """The address is asked for twice, and made of one loaded index for each row of the tile."""
    x = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    column = tl.arange(0, WIDTH)[None, :]
    row = tl.load(index + x)
    row = tl.where(row < 0, row + 50, row)
    total = tl.sum(tl.load(table + column + WIDTH * row), 1)[:, None]
    tl.store(out + x * WIDTH + column, tl.load(table + column + WIDTH * row) - total / WIDTH)


@pytest.mark.parametrize("processor", [{}, {"vector_bits": 256}, {"vector_bits": 128}])
def test_one_index_for_a_row(processor: dict[str, int]) -> None:
    random = np.random.default_rng(0)
    index, table = random.integers(-50, 50, 32), random.integers(-9, 9, (50, 64)).astype(np.float32)
    out = np.zeros((32, 64), np.float32)
    flat[(4,)](index, table, out, WIDTH=64, B=512, debug=True, sanitize_overflow=False, **processor)
    np.testing.assert_array_equal(out, 2 * table[index])
    kernel = flat.warmup(
        index, table, out, WIDTH=64, B=512, debug=True, sanitize_overflow=False, grid=(1,), **processor
    )
    assert "masked.gather" not in kernel.asm["llir"] and kernel.metadata.scratch_bytes == 0

    normalised[(8,)](index, table, out, WIDTH=64, X=4, **processor)
    np.testing.assert_array_equal(out, table[index] - table[index].sum(1, keepdims=True) / 64)
    kernel = normalised.warmup(index, table, out, WIDTH=64, X=4, grid=(1,), **processor)
    assert "masked.gather" not in kernel.asm["llir"] and kernel.metadata.scratch_bytes <= 256


def test_an_index_that_is_overwritten_is_loaded_before() -> None:
    index = np.arange(32)[::-1].copy()

    @weft.jit
    def moved(index, out, B: tl.constexpr):
        i = tl.arange(0, B)
        first = tl.load(index + i // 64)
        tl.store(index + i // 64, first * 0 + 7)
        tl.store(out + i, first)

    out = np.zeros(32 * 64, np.int64)
    moved[(1,)](index, out, B=2048)
    np.testing.assert_array_equal(out, np.repeat(np.arange(32)[::-1], 64))
    assert (index == 7).all()
