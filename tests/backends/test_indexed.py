"""Gathers and histograms by vectors (backends/cpu/indexed.py, access.py): any index, any type, any place of a word."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

RNG = np.random.default_rng(0)
NARROW = (np.int8, np.uint16, np.float16, ml_dtypes.bfloat16)


def random(dtype: Any, *shape: int) -> np.ndarray:
    if dtype is np.bool_:
        return RNG.integers(0, 2, shape).astype(np.bool_)
    return RNG.integers(0, 256, (*shape, np.dtype(dtype).itemsize)).astype(np.uint8).view(dtype)[..., 0].copy()


@weft.jit
def gathers(src, index, out, L: tl.constexpr, R: tl.constexpr, N: tl.constexpr, M: tl.constexpr, AXIS: tl.constexpr):
    """A source of LxM, an index of RxN."""
    rows, columns = tl.arange(0, R)[:, None], tl.arange(0, N)[None, :]
    source = tl.load(src + tl.arange(0, L)[:, None] * M + tl.arange(0, M)[None, :])
    tl.store(out + rows * N + columns, tl.gather(source, tl.load(index + rows * N + columns), AXIS))


@pytest.mark.parametrize("dtype", (*NARROW, np.bool_, np.float32, np.int64), ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("index", (np.int8, np.int64))
@pytest.mark.thinned(2)
def test_gather(dtype: Any, index: Any) -> None:
    """An index beyond the axis wraps around it, one below it, too."""
    info = np.iinfo(index)
    for source, wanted, axis in (((2, 32), (2, 64), 1), ((16, 8), (4, 8), 0), ((1, 1), (1, 4), 1)):
        src, places = random(dtype, *source), RNG.integers(info.min, info.max, wanted, dtype=index)
        out = np.zeros(wanted, dtype)
        gathers[(1,)](src, places, out, source[0], *wanted, source[1], axis)
        want = np.take_along_axis(src, places.astype(np.int64) % source[axis], axis)
        assert out.tobytes() == want.tobytes()


@weft.jit
def swapped(x, index, out, N: tl.constexpr, TIMES: tl.constexpr):
    """The source is carried by a loop, is written over, and is read at its own places besides."""
    value, places = tl.load(x + tl.arange(0, N)), tl.load(index + tl.arange(0, N))
    for _ in range(TIMES):
        found = tl.gather(value, places, 0)
        value = tl.gather(value * 3 + found, places, 0) + value // 7
    tl.store(out + tl.arange(0, N), value)


def test_gather_of_what_is_written_over() -> None:
    x, places = RNG.integers(0, 100, 128).astype(np.int32), RNG.integers(0, 128, 128).astype(np.int32)
    out = np.zeros_like(x)
    swapped[(1,)](x, places, out, 128, 5)
    value = x
    for _ in range(5):
        value = (value * 3 + value[places])[places] + value // 7
    np.testing.assert_array_equal(out, value)


@weft.jit
def looked_up(table, index, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + i, i < n, other=0)
    tl.store(out + i, tl.load(table + place, (i < n) & (place >= 0), other=3), i < n)


@pytest.mark.parametrize("dtype", NARROW, ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("index", (np.int8, np.int32, np.int64))
@pytest.mark.thinned(2)
def test_lookup_at_any_place_of_a_word(dtype: Any, index: Any) -> None:
    """The table begins at each place of a word of four bytes; elements that are masked off are not touched."""
    n, entries = 333, min(2000, np.iinfo(index).max)
    whole = random(dtype, entries + 4)
    for first in range(4):
        table = whole[first : first + entries]
        places = RNG.integers(-3, entries, n).astype(index)
        out = np.zeros(n, dtype)
        looked_up[(2,)](table, places, out, n, 256)
        want = np.where(places >= 0, table[np.maximum(places, 0)], np.array(3).astype(dtype)).astype(dtype)
        assert out.tobytes() == want.tobytes()


@weft.jit
def histograms(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + i, i < n, other=0), BINS, mask=i < n)
    tl.store(out + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)


@pytest.mark.parametrize("dtype", (np.int8, np.uint8, np.uint16, np.int64), ids=lambda t: np.dtype(t).name)
@pytest.mark.parametrize("bins", [1, 16, 256, 2048])
@pytest.mark.thinned(3)
def test_histogram(dtype: Any, bins: int) -> None:
    """Values below zero and beyond the last bin are not counted, nor what is masked off."""
    info = np.iinfo(dtype)
    for n, block in ((1500, 1024), (3, 4), (1, 1)):
        x = RNG.integers(max(info.min, -5), min(info.max, bins + 9), n).astype(dtype)
        x[: n // 3] = 0  # many of one bin, one after the other
        programs = -(-n // block)
        out = np.full((programs, bins), -1, np.int32)
        histograms[(programs,)](x, out, n, bins, block)
        for p in range(programs):
            part = x[p * block : (p + 1) * block].astype(np.int64)
            np.testing.assert_array_equal(out[p], np.bincount(part[(part >= 0) & (part < bins)], minlength=bins))
