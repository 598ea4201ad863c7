"""Tiles that are stored up to where their masks end: what lies beyond is left alone, and what lies before is right."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

WIDTHS: list[dict[str, Any]] = [{}, {"vector_bits": 128}, {"vector_bits": 256}]
SIZES = ((1, 1), (3, 7), (16, 64), (17, 65), (5, 129), (40, 8), (33, 200), (0, 5), (5, 0))


@weft.jit
def scaled(x, scale, bias, out, m, n, stride, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (r[:, None] < m) & (c[None, :] < n)
    at = r[:, None] * stride + c[None, :]
    y = tl.load(x + at, mask=mask) * tl.load(scale + r, mask=r < m, other=3.0)[:, None]
    y += tl.load(bias + c, mask=n > c, other=5.0)[None, :]
    tl.store(out + at, tl.where(mask, y, 100.0), mask=mask)


@pytest.mark.parametrize(("rows", "block"), [(4, 64), (16, 16), (1, 256), (8, 128), (64, 4)])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.thinned(3)
def test_nothing_else_is_stored(width: dict[str, Any], rows: int, block: int) -> None:
    stride = 210
    for m, n in SIZES:
        x = np.random.default_rng(m + n).integers(-50, 50, (m + 2, stride)).astype(np.float32)
        scale, bias = np.arange(1, m + 1).astype(np.float32), np.arange(n).astype(np.float32)
        out = np.full_like(x, 7.0)
        grid = (-(-m // rows) + 1, -(-n // block) + 1)
        scaled[grid](x, scale, bias, out, m, n, stride, ROWS=rows, BLOCK=block, **width)
        wanted = np.full_like(x, 7.0)
        wanted[:m, :n] = x[:m, :n] * scale[:, None] + bias
        np.testing.assert_array_equal(out, wanted)


@weft.jit
def alike(x, y, out, n, SIZE: tl.constexpr):
    """Both axes are as long, and masks along them the same, but for where they stand."""
    i = tl.arange(0, SIZE)
    above = tl.load(x + i, mask=i < n, other=9.0)[:, None]
    beside = tl.load(y + i, mask=i < n, other=4.0)[None, :]
    tl.store(out + i[:, None] * SIZE + i[None, :], above + beside, mask=(i < n)[None, :] & (i >= 0)[:, None])
    tl.store(out + SIZE * SIZE + i[:, None] * SIZE + i[None, :], above + beside, mask=(i < n)[None, :])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_mask_is_known_along_its_own_axis(width: dict[str, Any]) -> None:
    x, y = np.arange(32).astype(np.float32), np.arange(100, 132).astype(np.float32)
    for n in (0, 1, 9, 16, 31, 32):
        out = np.full((2, 32, 32), -1.0, np.float32)
        alike[(1,)](x, y, out, n, SIZE=32, **width)
        before = np.arange(32) < n
        wanted = np.where(before[None, :], np.where(before, x, 9.0)[:, None] + y[None, :], -1.0)
        np.testing.assert_array_equal(out, np.stack([wanted, wanted]))


@weft.jit
def around(x, scale, out, first, last, start, end, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Indices that are compared may wrap around, and those that address do not."""
    i, k = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    rows = first + i < last
    mask = rows[:, None] & (start + k < end)[None, :]
    at = i[:, None] * BLOCK + k[None, :]
    y = tl.load(x + at, mask=mask, other=0.0) + tl.load(scale + i, mask=rows, other=50.0)[:, None]
    tl.store(out + at, y, mask=mask)


@pytest.mark.parametrize("width", WIDTHS)
def test_indices_that_wrap_around(width: dict[str, Any]) -> None:
    x = np.random.default_rng(1).integers(-50, 50, (16, 64)).astype(np.float32)
    scale = np.arange(16).astype(np.float32)
    top = 2**31 - 1
    for first, last in ((0, 9), (top - 5, top - 2), (top - 20, top)):
        for start, end in ((0, 50), (top - 30, top - 9), (-10, 40), (top - 63, top)):
            out = np.full((16, 64), 7.0, np.float32)
            around[(1,)](x, scale, out, first, last, start, end, ROWS=16, BLOCK=64, **width)
            rows = np.int32(first) + np.arange(16, dtype=np.int32) < last
            columns = np.int32(start) + np.arange(64, dtype=np.int32) < end
            wanted = np.where(rows[:, None] & columns, x + scale[:, None], 7.0)
            np.testing.assert_array_equal(out, wanted)


def test_vectors_before_the_ends_are_without_masks() -> None:
    """In both versions, four or one at a time; one with a mask is stored without where that has all lanes."""
    x = np.zeros((64, 64), np.float32)
    text = scaled.warmup(x, x, x, x, 60, 60, 64, ROWS=16, BLOCK=64, grid=(4, 1), cpu="x86-64-v3").asm["llir"]
    stores = [len(re.findall(r"(?m)^  store <8 x float>(?!.*nontemporal)", block)) for block in text.split(":\n")]
    assert [n for n in stores if n] == [4, 4, 1, 1]
