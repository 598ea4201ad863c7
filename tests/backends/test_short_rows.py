"""Reductions of rows that are shorter than their tiles: the vectors within a row are taken without masks, as long as
there are such."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

BLOCK = 512
LENGTHS = (1, 7, 8, 31, 32, 33, 64, 100, 127, 128, 129, 255, 256, 300, 511, 512)
WIDTHS: list[dict[str, Any]] = [{}, {"vector_bits": 128}, {"vector_bits": 256}]


@weft.jit
def of_rows(x, sums, tops, places, spread, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    values = tl.load(x + row * stride + i, mask=mask, other=-7.0)
    total = tl.sum(tl.where(mask, values, 0.0), axis=0)
    tl.store(sums + row, total)
    tl.store(tops + row, tl.max(values, axis=0))
    tl.store(places + row, tl.argmax(values, axis=0))
    apart = tl.where(mask, values - total / n, 0.0)
    tl.store(spread + row, tl.sum(apart * apart, axis=0))


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_of_every_length(width: dict[str, Any]) -> None:
    x = np.random.default_rng(3).integers(-50, 50, (3, BLOCK)).astype(np.float32)
    for n in LENGTHS:
        sums, tops, spread = (np.zeros(3, np.float32) for _ in range(3))
        places = np.zeros(3, np.int32)
        of_rows[(3,)](x, sums, tops, places, spread, n, BLOCK, BLOCK=BLOCK, **width)
        rows = x[:, :n]
        np.testing.assert_array_equal(sums, rows.sum(1))
        assert (tops == np.maximum(rows.max(1), -7.0 if n < BLOCK else -50.0)).all()
        beyond = np.where(np.arange(BLOCK) < n, x, -7.0)
        np.testing.assert_array_equal(places, beyond.argmax(1))
        np.testing.assert_allclose(spread, ((rows - rows.mean(1, keepdims=True)) ** 2).sum(1), rtol=1e-4)


@weft.jit
def triangle(x, out, n, BLOCK: tl.constexpr):
    """The masks of the rows of a tile end at other places."""
    i = tl.arange(0, 16)[:, None]
    k = tl.arange(0, BLOCK)[None, :]
    values = tl.load(x + i * BLOCK + k, mask=(k < n) & (k <= i * 20), other=0.0)
    tl.store(out + tl.arange(0, 16), tl.sum(values, axis=1))


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_that_end_at_different_places(width: dict[str, Any]) -> None:
    x = np.random.default_rng(4).integers(-50, 50, (16, BLOCK)).astype(np.float32)
    k, i = np.arange(BLOCK), np.arange(16)[:, None]
    for n in (1, 40, 200, 500):
        out = np.zeros(16, np.float32)
        triangle[(1,)](x, out, n, BLOCK=BLOCK, **width)
        np.testing.assert_array_equal(out, np.where((k < n) & (k <= i * 20), x, 0).sum(1))


def test_the_vectors_within_a_row_are_taken_without_masks() -> None:
    x, out = np.zeros((3, BLOCK), np.float32), np.zeros(3, np.float32)
    text = of_rows.warmup(x, out, out, x.view(np.int32), out, 300, BLOCK, BLOCK=BLOCK, grid=(3,)).asm["llir"]
    loops = re.findall(r"\nhead[.\w]*:.*?\ndone", text, re.DOTALL)
    assert loops and not any("masked.load" in loop for loop in loops)


@weft.jit
def of_tiles(x, sums, tops, least, products, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (i[:, None] < m) & (k[None, :] < n)
    at = x + i[:, None] * BLOCK + k[None, :]
    tl.store(sums + i, tl.sum(tl.load(at, mask=mask, other=0.0), axis=1), mask=i < m)
    tl.store(tops + i, tl.max(tl.load(at, mask=mask, other=-float("inf")), axis=1), mask=i < m)
    tl.store(least + i, tl.min(tl.load(at, mask=mask, other=5.0), axis=1), mask=i < m)
    halves = tl.load(at, mask=mask, other=0.0).to(tl.float16).to(tl.float32)
    tl.store(products + i, tl.sum(halves * halves, axis=1), mask=i < m)


@pytest.mark.parametrize("rows", [1, 4, 16])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.thinned(3)
def test_what_lies_beyond_a_row_is_combined_in_as_if_all_of_it_was(width: dict[str, Any], rows: int) -> None:
    """Zeros make a positive zero of negative ones, and what stands for the rest of a row of NaN is a number."""
    x = np.random.default_rng(5).integers(-50, 50, (19, BLOCK)).astype(np.float32)
    x[3], x[4], x[5, ::3] = -0.0, np.nan, np.nan
    for n in (0, *LENGTHS):
        out = np.full((4, 19), 7.0, np.float32)
        of_tiles[(-(-19 // rows),)](x, *out, 19, n, ROWS=rows, BLOCK=BLOCK, **width)

        def padded(other: float, n: int = n) -> np.ndarray[Any, Any]:
            return np.where(np.arange(BLOCK) < n, x, np.float32(other))

        wanted = [padded(0).sum(1), np.fmax.reduce(padded(-np.inf), 1), np.fmin.reduce(padded(5), 1)]
        wanted.append((padded(0) ** 2).sum(1))
        np.testing.assert_array_equal(out, wanted)
        assert (np.signbit(out[0]) == np.signbit(wanted[0])).all()


@weft.jit
def powers(x, out, logs, roots, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    i, k = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    mask = (i[:, None] < m) & (k[None, :] < n)
    at = i[:, None] * BLOCK + k[None, :]
    values = tl.load(x + at, mask=mask, other=-float("inf"))
    top = tl.max(values, axis=1)
    grown = tl.exp(values - top[:, None])
    total = tl.sum(grown, axis=1)
    tl.store(out + at, grown / total[:, None], mask=mask)
    tl.store(logs + i, top + tl.log(total), mask=i < m)
    zeros = tl.load(x + at, mask=mask, other=0.0)
    tl.store(roots + at, zeros * tl.rsqrt(tl.sum(zeros * zeros, axis=1))[:, None], mask=mask)


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.thinned(2)
def test_what_is_kept_of_a_row_has_no_more_of_it(width: dict[str, Any], rows: int) -> None:
    """Where all is infinite, or any is no number, all is none, also of rows that follow such in the same memory."""
    x = np.random.default_rng(7).normal(size=(9, BLOCK)).astype(np.float32)
    x[0, 0], x[2], x[3, 0], x[5, 0], x[7] = np.nan, -np.inf, np.inf, -np.inf, 0
    for n in LENGTHS:
        out, roots, logs = np.full_like(x, 7.0), np.full_like(x, 7.0), np.zeros(9, np.float32)
        powers[(-(-9 // rows),)](x, out, logs, roots, 9, n, ROWS=rows, BLOCK=BLOCK, **width)
        row = x[:, :n].astype(np.float64)
        with np.errstate(all="ignore"):
            top = np.fmax.reduce(row, 1, keepdims=True)
            grown = np.exp(row - top)
            total = grown.sum(1, keepdims=True)
            root = row / np.sqrt((row**2).sum(1, keepdims=True))
            np.testing.assert_allclose(out[:, :n], grown / total, rtol=2e-5, atol=1e-30)
            np.testing.assert_allclose(logs, (top + np.log(total))[:, 0], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(roots[:, :n], root, rtol=1e-4)
        assert (out[:, n:] == 7).all() and (roots[:, n:] == 7).all()


@weft.jit
def of_columns(x, out, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    k, total = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.zeros([BLOCK], tl.float32)
    for first in range(0, m, ROWS):
        i = first + tl.arange(0, ROWS)
        mask = (i[:, None] < m) & (k[None, :] < n)
        total += tl.sum(tl.load(x + i[:, None] * n + k[None, :], mask=mask, other=0.0), axis=0)
    tl.store(out + k, total, mask=k < n)


@pytest.mark.parametrize(("rows", "block"), [(16, 128), (64, 32), (4, 8), (2, 256)])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.thinned(3)
def test_columns_of_odd_tables(width: dict[str, Any], rows: int, block: int) -> None:
    for m, n in ((1, 1), (37, 129), (64, 128), (65, 7), (3, 200)):
        x = np.random.default_rng(6).integers(-50, 50, (m, n)).astype(np.float32)
        out = np.zeros(n, np.float32)
        of_columns[(-(-n // block),)](x, out, m, n, ROWS=rows, BLOCK=block, **width)
        np.testing.assert_array_equal(out, x.sum(0))


@weft.jit
def of_one(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + i, mask=i < n, other=0.0), axis=0))


@pytest.mark.parametrize("lanes", [256, 512])
def test_vectors_beyond_a_row_are_left_out(lanes: int) -> None:
    """The loop with masks goes on for as long as any may hold, not up to the end of the tile."""
    x, out = np.zeros((3, BLOCK), np.float32), np.zeros(3, np.float32)
    text = of_one.warmup(x, out, 300, BLOCK=BLOCK, grid=(3,), vector_bits=lanes).asm["llir"]
    masked = [loop for loop in re.findall(r"\nhead[.\w]*:.*?\ndone", text, re.DOTALL) if "masked.load" in loop]
    assert len(masked) == 1 and " or i1 " in masked[0]


@weft.jit
def twice_flat(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@weft.jit
def twice_rows(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.program_id(0) * BLOCK + i
    tl.store(out + at, tl.load(x + at, mask=i < n) * 2, mask=i < n)


def test_points_have_two_versions_where_every_program_has_such_as_are_not_whole() -> None:
    """Of an array that is cut into tiles, one tile is not whole; of rows shorter than their tiles, each."""
    x, out = np.arange(3 * BLOCK, dtype=np.float32), np.zeros(3 * BLOCK, np.float32)
    multiplied = []
    for kernel in (twice_flat, twice_rows):
        text = kernel.warmup(x, out, 300, BLOCK=BLOCK, grid=(3,)).asm["llir"]
        multiplied.append(len(re.findall(r"= fmul\b", text)))
        out[:] = 0
        kernel[(3,)](x, out, 300, BLOCK=BLOCK)
        written = np.arange(3 * BLOCK) % BLOCK < 300 if kernel is twice_rows else np.arange(3 * BLOCK) < 300
        np.testing.assert_array_equal(out, np.where(written, 2 * x, 0))
    assert multiplied[0] < multiplied[1]


@weft.jit
def in_a_loop(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += 2 * tl.load(x + tl.program_id(0) * n + start + i, mask=start + i < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


def test_points_have_two_versions_where_a_loop_goes_along_a_row() -> None:
    """It may have one turn, which is not whole, and masks take twice as long."""
    for n in (1, 7, 200, 256, 700):
        x, out = np.random.default_rng(n).integers(-9, 9, (3, n)).astype(np.float32), np.zeros(3, np.float32)
        in_a_loop[(3,)](x, out, n, BLOCK=256)
        np.testing.assert_array_equal(out, 2 * x.sum(1))
    text = in_a_loop.warmup(x, out, 300, BLOCK=256, grid=(3,)).asm["llir"]
    assert len(re.findall(r"= fmul\b", text)) >= 3  # whole turns, whole points of others, and the rest


@weft.jit
def parts_of_rows(x, out, n, BLOCK: tl.constexpr):
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = tl.program_id(0) * n + j
    tl.store(out + at, tl.load(x + at, mask=j < n) * 2, mask=j < n)


def test_points_have_two_versions_where_programs_have_parts_of_rows() -> None:
    """The last part of each row is cut, not only that of the last row."""
    for n in (1, 300, 512, 513):
        x = np.random.default_rng(n).integers(-9, 9, (3, n)).astype(np.float32)
        out = np.zeros((4, n), np.float32)
        parts_of_rows[(3, -(-n // BLOCK))](x, out, n, BLOCK=BLOCK)
        np.testing.assert_array_equal(out, np.concatenate([2 * x, np.zeros((1, n))]))
    text = parts_of_rows.warmup(x, out, 301, BLOCK=BLOCK, grid=(3, 1)).asm["llir"]
    loads = [len(re.findall(r"= load <\d+ x float>", block)) for block in text.split(":\n")]
    assert [n for n in loads if n] == [4, 4, 1]  # of whole tiles, and of whole points of others, and what is left there
