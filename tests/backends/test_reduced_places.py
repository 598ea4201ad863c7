"""Extrema with their places: a loop along the axis knows which place is the greater one, and ends at padding."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

PROCESSORS: list[dict[str, Any]] = [{"cpu": "x86-64-v3"}, {"vector_bits": 128}, {}]


@weft.jit
def places(x, largest, smallest, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    at = x + row * n + i
    tl.store(largest + row, tl.argmax(tl.load(at, mask=i < n, other=-float("inf")), 0))
    tl.store(smallest + row, tl.argmin(tl.load(at, mask=i < n, other=float("inf")), 0))


@weft.jit
def place(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.argmax(tl.load(x + tl.arange(0, BLOCK)), 0))


@weft.jit
def with_nan(value, place, other, further):
    """PyTorch's: a NaN is the greatest; of equal elements the first."""
    higher = value > other
    equal = value == other
    is_nan, other_is_nan = value != value, other != other
    higher |= is_nan & (other_is_nan == 0)
    equal |= is_nan & other_is_nan
    higher |= equal & (place < further)
    return tl.where(higher, value, other), tl.where(higher, place, further)


@weft.jit
def places_with_nan(x, out, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None], tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + row * n + i, mask=i < n, other=-float("inf"))
    _, place = tl.reduce((value, tl.broadcast_to(i, (ROWS, BLOCK))), 1, with_nan)
    tl.store(out + tl.program_id(0) * ROWS + tl.arange(0, ROWS), place)


@weft.jit
def last(value, place, other, further):
    """Of equal elements the last."""
    keep = (value > other) | ((value == other) & (place > further))
    return tl.where(keep, value, other), tl.where(keep, place, further)


@weft.jit
def last_places(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=0.0)
    _, place = tl.reduce((value, i), 0, last)
    tl.store(out, place)


@weft.jit
def permuted_places(x, places, out, n, BLOCK: tl.constexpr):
    """Places that are data: nothing is known of them."""
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=-float("inf"))
    _, place = tl.reduce((value, tl.load(places + i)), 0, with_nan)
    tl.store(out, place)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_the_first_of_equal_elements(kind: Any, processor: dict[str, Any]) -> None:
    for n in (1, 63, 64, 65, 300, 511, 512):
        x = np.random.default_rng(n).integers(-3, 4, (4, n)).astype(kind)
        x[2] = -np.inf
        x[3] = np.inf
        largest, smallest = np.zeros(4, np.int32), np.zeros(4, np.int32)
        places[(4,)](x, largest, smallest, n, BLOCK=512, **processor)
        np.testing.assert_array_equal(largest, x.argmax(1))
        np.testing.assert_array_equal(smallest, x.argmin(1))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_rules_of_others(processor: dict[str, Any]) -> None:
    for n in (5, 70, 200, 256):
        x = np.random.default_rng(n).integers(-3, 4, (8, n)).astype(np.float32)
        x[1, n // 2 :] = np.nan
        x[5] = -np.inf
        out = np.zeros(8, np.int32)
        places_with_nan[(2,)](x, out, n, ROWS=4, BLOCK=256, **processor)
        np.testing.assert_array_equal(out, x.argmax(1))
        last_places[(1,)](-np.abs(x[0]), out, n, BLOCK=256, **processor)
        assert out[0] == (255 if n < 256 else np.flatnonzero(x[0] == 0)[-1])
        order = np.random.default_rng(n).permutation(256).astype(np.int32)
        permuted_places[(1,)](x[0], order, out, n, BLOCK=256, **processor)
        assert out[0] == order[:n][x[0] == x[0].max()].min()


def test_places_are_not_compared_in_the_loop() -> None:
    """But where accumulators are combined: three times for the vectors side by side."""
    x, out = np.zeros(1024, np.float32), np.zeros(1, np.int32)
    text = place.warmup(x, out, BLOCK=1024, grid=(1,), cpu="x86-64-v3").asm["llir"]
    assert len(re.findall(r"icmp slt <8 x i32>", text)) == 3


def test_the_loop_ends_at_padding() -> None:
    """Behind one for the points without masks."""
    x, out = np.zeros(1024, np.float32), np.zeros(1, np.int32)
    text = places.warmup(x, out, out, 900, BLOCK=1024, grid=(1,), cpu="x86-64-v3").asm["llir"]
    assert len(re.findall(r"(?m)^head\d*:", text)) == 2 * 2
    text = last_places.warmup(x, out, 900, BLOCK=1024, grid=(1,), cpu="x86-64-v3").asm["llir"]
    assert len(re.findall(r"(?m)^head\d*:", text)) == 1
