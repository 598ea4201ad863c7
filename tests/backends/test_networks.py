"""Chains of exchanges in registers (backends/cpu/networks.py, exchange.py): sorts, and butterflies of any kind."""

from __future__ import annotations

import platform
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.backends.cpu.exchange import exchange_masks

RNG = np.random.default_rng(0)
TYPES = (np.int8, np.uint16, np.int32, np.uint64, np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
X86 = platform.machine().lower() in ("x86_64", "amd64")
WIDTHS = {
    "16 bytes": {"cpu": "x86-64", "features": "+sse2"},
    "32 bytes": {"cpu": "x86-64-v3", "features": "+avx,+avx2"},
}
PROCESSORS = pytest.mark.parametrize("processor", WIDTHS.values() if X86 else [], ids=WIDTHS if X86 else [])
"""Beside the one that this runs on."""


@weft.jit
def sorts(x, up, down, ROWS: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :]
    value = tl.load(x + place)
    tl.store(up + place, tl.sort(value))
    tl.store(down + place, tl.sort(value, descending=True))


@weft.jit
def best(x, large, small, ROWS: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, keep = tl.arange(0, ROWS)[:, None], tl.arange(0, K)[None, :]
    value = tl.load(x + rows * N + tl.arange(0, N)[None, :])
    tl.store(large + rows * K + keep, tl.topk(value, K))
    tl.store(small + rows * K + keep, tl.topk(value, K, descending=False))


def random_bits(dtype: Any, rows: int, n: int) -> np.ndarray:
    """Elements of any bits: NaN of both signs, infinities, zeros of both signs, subnormal numbers."""
    width = np.dtype(dtype).itemsize
    values = RNG.integers(0, 256, (rows, n * width)).astype(np.uint8).view(dtype)
    if values.dtype.kind not in "iu":
        values.flat[: min(4, values.size)] = np.array([0.0, -0.0, np.inf, -np.inf])[: values.size]
    return values


def in_order(values: np.ndarray) -> np.ndarray:
    """Rows sorted as docs/reference/semantics.md says: floats by their bits, so that NaN and -0.0 have places."""
    if values.dtype.kind in "iu":
        return np.sort(values, 1)
    bits = values.view(f"i{values.itemsize}")
    keys = bits ^ ((bits >> (8 * values.itemsize - 1)) & ((1 << (8 * values.itemsize - 1)) - 1))
    return np.take_along_axis(values, np.argsort(keys, 1, kind="stable"), 1)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def check_sorts(dtype: Any, rows: int, n: int, **processor: Any) -> None:
    x = random_bits(dtype, rows, n)
    up, down, want = np.zeros_like(x), np.zeros_like(x), in_order(x)
    sorts[(1,)](x, up, down, rows, n, **processor)
    assert same_bits(up, want)
    assert same_bits(down, want[:, ::-1])


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.thinned(2)
def test_sorts(dtype: Any) -> None:
    check_sorts(dtype, 2, 64)


@pytest.mark.parametrize("rows, n", [(1, 2), (1, 4), (1, 8), (1, 16), (32, 8), (1, 2048)])
@pytest.mark.thinned(2)
def test_sizes(rows: int, n: int) -> None:
    check_sorts(np.float32, rows, n)


@PROCESSORS
@pytest.mark.parametrize("dtype", (np.float32, np.int8), ids=lambda t: np.dtype(t).name)
@pytest.mark.thinned(2)
def test_processors(dtype: Any, processor: dict[str, Any]) -> None:
    check_sorts(dtype, 2, 128, **processor)


def check_largest(dtype: Any, rows: int, n: int, k: int, **processor: Any) -> None:
    x = random_bits(dtype, rows, n)
    large, small, want = np.zeros((rows, k), x.dtype), np.zeros((rows, k), x.dtype), in_order(x)
    best[(1,)](x, large, small, rows, n, k, **processor)
    assert same_bits(small, want[:, :k])
    assert same_bits(large, want[:, ::-1][:, :k])


@pytest.mark.parametrize("rows, n, k", [(1, 8, 1), (1, 256, 8), (2, 128, 64), (16, 16, 2), (1, 4096, 4)])
def test_largest(rows: int, n: int, k: int) -> None:
    check_largest(np.float32, rows, n, k)


@pytest.mark.parametrize("dtype", (np.int8, np.int64, np.float16), ids=lambda t: np.dtype(t).name)
def test_largest_of_types(dtype: Any) -> None:
    check_largest(dtype, 2, 256, 4)


@PROCESSORS
def test_largest_on_processors(processor: dict[str, Any]) -> None:
    check_largest(np.float32, 1, 256, 8, **processor)


@weft.jit
def butterflies(x, weights, out, scale, N: tl.constexpr, LOG: tl.constexpr):
    """Minima and sums, with a product in between whose other operands are loaded, and depend on the program."""
    value = tl.load(x + tl.arange(0, N))
    for i in tl.static_range(LOG):
        far: tl.constexpr = 1 << (i * 3) % LOG
        pairs = tl.reshape(value, [N // (2 * far), 2, far])
        joined = tl.join(tl.min(pairs, 1), tl.sum(pairs, 1))
        value = tl.reshape(tl.permute(joined, (0, 2, 1)), [N])
        value = value * (tl.load(weights + tl.arange(0, N)) + scale * tl.program_id(0)) + tl.arange(0, N)
    tl.store(out + tl.program_id(0) * N + tl.arange(0, N), value)


@pytest.mark.parametrize("log", [4, 7, 10])
def test_butterflies(log: int) -> None:
    n = 1 << log
    x, weights = (RNG.integers(-1000, 1000, n).astype(np.int32) for _ in range(2))
    out = np.zeros((2, n), np.int32)
    butterflies[(2,)](x, weights, out, 7, n, log)
    with np.errstate(over="ignore"):
        for program in (0, 1):
            value = x
            for i in range(log):
                far = 1 << (i * 3) % log
                pairs = value.reshape(n // (2 * far), 2, far)
                joined = np.stack([pairs.min(1), pairs.sum(1, dtype=np.int32)], 1).reshape(n)
                value = joined * (weights + np.int32(7 * program)) + np.arange(n, dtype=np.int32)
            np.testing.assert_array_equal(out[program], value)


@weft.jit
def merged(x, out, again, n, K: tl.constexpr, N: tl.constexpr):
    """The best of a long row, piece by piece: the tile that the loop carries is sorted, and used besides."""
    kept = tl.full([K], -1000, tl.int32)
    for start in range(0, n, N):
        piece = tl.load(x + start + tl.arange(0, N))
        tl.store(again + start + tl.arange(0, N), piece)
        kept = tl.topk(tl.cat(kept, tl.topk(piece, K), can_reorder=True), K)
    tl.store(out + tl.arange(0, K), kept)
    tl.store(out + K + tl.arange(0, K), tl.sort(kept ^ 5))
    tl.store(out + 2 * K + tl.arange(0, K), kept)


def test_sorts_in_a_loop() -> None:
    x = RNG.integers(-1000, 1000, 1024).astype(np.int32)
    out, again = np.zeros((3, 16), np.int32), np.zeros_like(x)
    merged[(1,)](x, out, again, 1024, 16, 128)
    want = np.sort(x)[::-1][:16]
    np.testing.assert_array_equal(out, [want, np.sort(want ^ 5), want])
    np.testing.assert_array_equal(again, x)


@weft.jit
def in_branches(x, out, n, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(x + i)
    if n > 3:
        value = tl.sort(value)
        other = tl.gather(value, (i * 7) % N, 0)
    else:
        other = tl.sort(value, descending=True)
    done = 0
    while done < n:
        other = tl.sort(other ^ done) + value
        done += 1
    tl.store(out + i, other)


@pytest.mark.parametrize("n", [0, 2, 5])
def test_sorts_in_branches(n: int) -> None:
    x, out = RNG.integers(-99, 99, 64).astype(np.int32), np.zeros(64, np.int32)
    in_branches[(1,)](x, out, n, 64)
    value = np.sort(x) if n > 3 else x
    other = value[np.arange(64) * 7 % 64] if n > 3 else np.sort(x)[::-1]
    for done in range(n):
        other = np.sort(other ^ done) + value
    np.testing.assert_array_equal(out, other)


def test_a_sort_takes_its_input_before_a_store() -> None:
    """The source is loaded before the store that comes before the exchanges are done."""

    @weft.jit
    def over(x, N: tl.constexpr):
        place = tl.arange(0, N)
        value = tl.load(x + place)
        pairs = tl.reshape(value, [N // 2, 2])
        low, high = tl.min(pairs, 1), tl.max(pairs, 1)
        tl.store(x + place, tl.full([N], 7, tl.int32))
        value = tl.sort(tl.reshape(tl.join(low, high), [N]))
        tl.store(x + place, value + tl.load(x + place))

    x = RNG.integers(0, 1000, 64).astype(np.int32)
    want = np.sort(x) + 7
    over[(1,)](x, 64)
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("lane_bits", range(1, 7))
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_exchange_masks(lane_bits: int, bits: int) -> None:
    """Whatever moves in the lanes: the account of it is right."""
    count = 1 << lane_bits
    for position in range(lane_bits):
        *vectors, moved = exchange_masks(lane_bits, position, bits)
        for second, lanes in enumerate(vectors):
            for lane, source in enumerate(lanes):
                want = second << position  # the bit that went out tells the new vectors apart
                for k, was in enumerate(moved):
                    want |= (lane >> k & 1) << (lane_bits if was is None else was)
                assert source == want, (count, position)


def test_a_sort_is_one_loop_over_its_rows() -> None:
    """Rows that fit in registers are read once and written once: no steps through memory."""
    x = np.zeros((8, 64), np.float32)
    kernel = sorts[(1,)](x, np.zeros_like(x), np.zeros_like(x), 8, 64)
    told = [r for r in kernel.remarks if r.kind == "loop nest" and "weft.network" in str(r)]
    assert len(told) == 2
