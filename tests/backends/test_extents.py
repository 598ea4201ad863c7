"""Loops along an axis end where everything beyond is padding that nothing looks at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

PROCESSORS: list[dict[str, Any]] = [{}, {"vector_bits": 256}, {"vector_bits": 128}]


@weft.jit
def larger(a, b):
    """The larger of two numbers, NaN if there is one, as it is written with a selection."""
    chosen = a > b
    chosen |= a != a
    return tl.where(chosen, a, b)


@weft.jit
def padded(x, y, out, sums, M: tl.constexpr, N: tl.constexpr, X: tl.constexpr, R: tl.constexpr):
    """Sums, extremes and a softmax of rows of N, in tiles of R."""
    row = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    r = tl.arange(0, R)[None, :]
    inside = (r < N) & (row < M)
    a = tl.load(x + r + N * row, inside, other=0.0)
    b = tl.load(y + r + N * row, inside, other=0.0)
    total = tl.sum(tl.where(inside, tl.abs(a - b), 0.0), 1)[:, None]
    most = tl.reduce(tl.where(inside, a, float("-inf")), 1, larger)[:, None]
    least = tl.min(tl.where(inside, a, float("inf")), 1)[:, None]
    e = tl.exp(a - most)
    share = e / tl.sum(tl.where(inside, e, 0.0), 1)[:, None]
    tl.store(out + r + N * row, share, inside)
    tl.store(sums + 2 * row, total, row < M)
    tl.store(sums + 2 * row + 1, least, row < M)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(
    ("n", "tile"), [(33, 64), (21, 32), (100, 128), (7, 8), (5, 64), (63, 64), (3, 128), (300, 512)]
)
@pytest.mark.thinned(3)
def test_rows_shorter_than_their_tile(n: int, tile: int, processor: dict[str, Any]) -> None:
    random = np.random.default_rng(n)
    x, y = (random.standard_normal((37, n)).astype(np.float32) for _ in range(2))
    e = np.exp(x - x.max(1, keepdims=True))
    for rows in (1, 8):
        out, sums = np.full((38, n), 7, np.float32), np.full((38, 2), 7, np.float32)
        padded[(-(-37 // rows),)](x, y, out, sums, M=37, N=n, X=rows, R=tile, **processor)
        np.testing.assert_allclose(out[:37], e / e.sum(1, keepdims=True), rtol=1e-5)
        np.testing.assert_allclose(sums[:37], np.stack((np.abs(x - y).sum(1), x.min(1)), 1), rtol=1e-5)
        assert (out[37] == 7).all() and (sums[37] == 7).all()


@weft.jit
def extremes(x, out, N: tl.constexpr, R: tl.constexpr, WITH: tl.constexpr):
    r = tl.arange(0, R)
    a = tl.load(x + r, r < N)
    tl.store(out, tl.max(tl.where(r < N, a, WITH), 0))
    tl.store(out + 1, tl.reduce(tl.where(r < N, a, WITH), 0, larger))
    tl.store(out + 2, tl.sum(tl.where(r < N, a, WITH), 0))


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("other", [float("-inf"), 0.0, 3.0])
def test_padding_counts_as_it_is(other: float, processor: dict[str, Any]) -> None:
    """One that is larger than all of the row is the result, and NaN loses to it, or wins."""
    for row in (np.full(33, -2.0), np.full(33, np.nan), np.where(np.arange(33) == 20, np.nan, 1.0), np.full(33, -0.0)):
        x, out = row.astype(np.float32), np.zeros(3, np.float32)
        extremes[(1,)](x, out, N=33, R=64, WITH=other, **processor)
        tile = np.concatenate((x, np.full(31, other, np.float32)))
        expected = np.array([np.fmax.reduce(tile), tile.max(), tile.sum()], np.float32)
        np.testing.assert_array_equal(out, expected, err_msg=f"{row[0]} and {other}")
        assert (np.signbit(out[2]) == np.signbit(expected[2])).all()


@weft.jit
def read_beyond(x, out, N: tl.constexpr, R: tl.constexpr):
    """What is kept in memory is read in another order, where its padding counts."""
    r = tl.arange(0, R)
    a = tl.load(x + r, r < N, other=5.0)
    e = tl.exp(a - tl.sum(tl.where(r < N, a, 0.0), 0))
    tl.store(out + r, e, r < N)
    tl.store(out + R + r, tl.flip(e))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_padding_that_is_looked_at(processor: dict[str, Any]) -> None:
    x, out = np.linspace(-1, 1, 33, dtype=np.float32), np.zeros(128, np.float32)
    read_beyond[(1,)](x, out, N=33, R=64, **processor)
    e = np.exp(np.concatenate((x, np.full(31, 5, np.float32))) - x.sum())
    np.testing.assert_allclose(out[:33], e[:33], rtol=1e-5)
    np.testing.assert_allclose(out[64:], e[::-1], rtol=1e-5)


@weft.jit
def mirrored(x, out, N: tl.constexpr, R: tl.constexpr):
    """One range is rows and columns; only columns end early."""
    r = tl.arange(0, R)
    inside = r < N
    a = tl.load(x + r[:, None] * R + r[None, :], inside[:, None] & inside[None, :], other=1.0)
    tl.store(out + r, tl.sum(tl.where(inside[None, :], a, 0.0), 1))


@pytest.mark.parametrize("processor", PROCESSORS)
def test_an_axis_that_does_not_end(processor: dict[str, Any]) -> None:
    x, out = np.arange(32 * 32, dtype=np.float32).reshape(32, 32), np.zeros(32, np.float32)
    mirrored[(1,)](x, out, N=21, R=32, **processor)
    np.testing.assert_array_equal(out, np.where(np.arange(32) < 21, x[:, :21].sum(1), 21))


def test_less_is_done() -> None:
    """The loop over a row of 1,000 has 124 iterations of vectors, and what is left of them stands behind it."""
    x = np.zeros(1000, np.float32)
    ir = extremes.warmup(x, np.zeros(3, np.float32), N=1000, R=4096, WITH=0.0, grid=(1,), vector_bits=256).asm["llir"]
    assert "4096" not in ir and "i64 31" in ir


@weft.jit
def quantised(x, out, scales, N: tl.constexpr, R: tl.constexpr):
    """What is loaded is used twice, and becomes integers."""
    row, r = tl.program_id(0), tl.arange(0, R)
    a = tl.load(x + r + N * row, r < N, other=0.0)
    scale = tl.max(tl.where(r < N, tl.abs(a), float("-inf"))) / 127
    tl.store(scales + row, scale)
    tl.store(out + r + N * row, tl.extra.libdevice.nearbyint(a / scale).to(tl.int8), r < N)


@weft.jit
def quotients(x, out, sums, N: tl.constexpr, R: tl.constexpr):
    """What is divided by lies in memory that may hold zeros beyond the end."""
    row, r = tl.program_id(0), tl.arange(0, R)
    a = tl.load(x + r + N * row, r < N, other=1)
    total = tl.sum(tl.where(r < N, a, 0))
    tl.store(sums + row, total)
    tl.store(out + r + N * row, total // a, r < N)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize(("n", "tile"), [(33, 64), (100, 128), (500, 512)])
@pytest.mark.thinned(3)
def test_integers_made_of_a_row(n: int, tile: int, processor: dict[str, Any]) -> None:
    x = np.random.default_rng(n).uniform(-9, 9, (5, n)).astype(np.float32)
    out, scales = np.zeros((5, n), np.int8), np.zeros(5, np.float32)
    quantised[(5,)](x, out, scales, N=n, R=tile, **processor)
    scale = np.abs(x).max(1) / np.float32(127)
    np.testing.assert_array_equal(scales, scale)
    np.testing.assert_array_equal(out, np.rint(x / scale[:, None]).astype(np.int8))
    whole = np.random.default_rng(n).integers(1, 9, (5, n)).astype(np.int32)
    parts, sums = np.zeros((5, n), np.int32), np.zeros(5, np.int32)
    quotients[(5,)](whole, parts, sums, N=n, R=tile, **processor)
    np.testing.assert_array_equal(parts, whole.sum(1)[:, None] // whole)


def test_integers_do_not_keep_a_row_from_ending() -> None:
    """The tile is written up to its end only, and read without masks but for the last vector."""
    x, out, scales = np.zeros((1, 500), np.float32), np.zeros((1, 500), np.int8), np.zeros(1, np.float32)
    ir = quantised.warmup(x, out, scales, N=500, R=512, grid=(1,), vector_bits=256).asm["llir"]
    assert ir.count("masked.load") <= 4, ir.count("masked.load")
