"""Several vectors of a loop at a time: all loads come before the stores."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

PROCESSORS: list[dict[str, Any]] = [{"cpu": "x86-64-v3"}, {"vector_bits": 128}, {}]


@weft.jit
def added(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@weft.jit
def shifted(x, y, n, BLOCK: tl.constexpr):
    """Loads what has just been stored, and stores over what is loaded."""
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i + 1, mask=i < n)
    tl.store(x + i, a, mask=i < n)
    tl.store(y + i, tl.load(x + i + 1, mask=i < n) + a, mask=i < n)


@weft.jit
def of_rows(x, w, out, columns, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    mask = i < columns
    tl.store(out + row * columns + i, tl.load(x + row * columns + i, mask=mask) * tl.load(w + i, mask=mask), mask=mask)


@weft.jit
def overwritten(x, out, BLOCK: tl.constexpr):
    """Four elements of the tile are stored at each place, of which the last stays."""
    i = tl.arange(0, BLOCK)
    tl.store(out + i // 4, tl.load(x + i))


@weft.jit
def many(x, out, BLOCK: tl.constexpr, STORES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    for k in tl.static_range(STORES):
        tl.store(out + k * BLOCK + i, value * (k + 1))


def _order(text: str) -> list[str]:
    """The loads and stores of whole vectors in each block that stores some, as letters."""
    blocks = [re.findall(r"(?m)= (l)oad <|^  (s)tore <", block) for block in text.split(":\n")]
    words = ["".join(load + store for load, store in block).upper() for block in blocks]
    return [word for word in words if "S" in word]


def test_loads_of_four_vectors_come_before_their_stores() -> None:
    x = np.zeros(4096, np.float32)
    text = added.warmup(x, x, x, x.size, BLOCK=1024, grid=(4,), cpu="x86-64-v3").asm["llir"]
    assert _order(text)[:2] == ["LLLLLLLLSSSS"] * 2  # around the caches, and through them
    assert "LS" not in _order(text)


def test_vectors_of_one_array_are_stored_after_each_other() -> None:
    x, out = np.zeros(256, np.float32), np.zeros(3 * 256, np.float32)
    text = many.warmup(x, out, BLOCK=256, STORES=3, grid=(1,), cpu="x86-64-v3").asm["llir"]
    stored = re.findall(r"  store <8 x float> %\w+, ptr (%\w+)", text)
    places = [re.findall(rf"{pointer} = getelementptr float, ptr (%\w+),", text)[0] for pointer in stored]
    assert [len(list(vectors)) for _, vectors in groupby(places[:12])] == [4, 4, 4]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("n", [1, 15, 64, 333, 1000, 1024])
def test_rows_that_end_anywhere(n: int, processor: dict[str, Any]) -> None:
    x = np.random.default_rng(n).integers(-9, 9, (3, n)).astype(np.float32)
    out, w = np.zeros((4, n), np.float32), np.arange(n).astype(np.float32)
    of_rows[(3,)](x, w, out, n, BLOCK=1024, **processor)
    np.testing.assert_array_equal(out, np.concatenate([x * w, np.zeros((1, n))]))
    flat = np.full(3 * n + 64, 7, np.float32)
    added[(3,)](x, x, flat, 3 * n, BLOCK=1024, **processor)
    np.testing.assert_array_equal(flat, np.concatenate([2 * x.ravel(), np.full(64, 7)]))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_stores_before_and_after_loads_of_the_same_array(processor: dict[str, Any]) -> None:
    x, y = np.arange(600).astype(np.float32), np.zeros(600, np.float32)
    shifted[(1,)](x, y, 500, BLOCK=512, **processor)
    moved = np.arange(600) + (np.arange(600) < 500)
    np.testing.assert_array_equal(x, moved)
    np.testing.assert_array_equal(y[:500], moved[1:501] + np.arange(1, 501))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_one_array_as_several_arguments(processor: dict[str, Any]) -> None:
    x = np.arange(2000).astype(np.float32)
    added[(2,)](x[:1500], x[100:1600], x[100:1600], 1500, BLOCK=2048, **processor)
    want = np.arange(2000) + np.pad(np.arange(1500), (100, 400))
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_last_element_at_a_place_stays(processor: dict[str, Any]) -> None:
    x, out = np.random.default_rng(0).random(512, np.float32), np.zeros(128, np.float32)
    overwritten[(1,)](x, out, BLOCK=512, **processor)
    np.testing.assert_array_equal(out, x[3::4])


@pytest.mark.parametrize(("stores", "together"), [(3, 4), (6, 2)])
def test_few_vectors_wait_for_the_loads(stores: int, together: int) -> None:
    """They have a register each."""
    x, out = np.zeros(256, np.float32), np.zeros(12 * 256, np.float32)
    text = many.warmup(x, out, BLOCK=256, STORES=stores, grid=(1,), cpu="x86-64-v4").asm["llir"]
    assert max(block.count("S") for block in _order(text)) == stores * together
