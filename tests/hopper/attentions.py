"""Variants of attention: scores changed in many ways, and kernels of another structure; each with what NumPy says.

A score function is given a block of scores in powers of 2, its rows and columns, the head, a pointer to more, how many
keys there are, and a size.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft
import weft.language as tl

from .running import DTYPES, aligned
from .specialized import LOG2E, NEVER, Attention, described, simulated

N = 200
"""Rows and keys: no multiple of a block's."""


# -- scores -----------------------------------------------------------------------------------------------------------


@weft.jit
def bias(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    at = extra + (head * SIZE + rows[:, None]) * SIZE + columns[None, :]
    return s + tl.load(at, (rows[:, None] < SIZE) & (columns[None, :] < SIZE), 0.0)


@weft.jit
def bias_of_keys(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return s + tl.load(extra + columns, columns < SIZE, 0.0)[None, :]


@weft.jit
def bias_of_rows(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return s * tl.load(extra + rows, rows < SIZE, 0.0)[:, None]


@weft.jit
def relative(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    far = rows[:, None] - columns[None, :] + SIZE
    return s + tl.load(extra + far, (far >= 0) & (far < 2 * SIZE), 0.0)


@weft.jit
def bucketed(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return s + tl.load(extra + tl.minimum(tl.abs(rows[:, None] - columns[None, :]) // 16, 7))


@weft.jit
def capped(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return SIZE * (2 / (1 + tl.exp2(s * (-2 * 1.4426950408889634 / SIZE))) - 1)


@weft.jit
def alibi(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    slope = tl.exp2(-8.0 * (head + 1) / SIZE)
    return s - slope * tl.abs(rows[:, None] - columns[None, :])


@weft.jit
def alibi_of_table(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return s - tl.load(extra + head) * tl.abs(rows[:, None] - columns[None, :])


@weft.jit
def window_both_ways(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return tl.where(tl.abs(rows[:, None] - columns[None, :]) <= SIZE, s, -1.0e30)


@weft.jit
def prefix(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return tl.where((columns[None, :] <= rows[:, None]) | (columns[None, :] < SIZE), s, -1.0e30)


@weft.jit
def documents(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    mine, its = tl.load(extra + rows, rows < SIZE, -1), tl.load(extra + columns, columns < SIZE, -2)
    return tl.where(mine[:, None] == its[None, :], s, -1.0e30)


@weft.jit
def dilated(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return tl.where((rows[:, None] - columns[None, :]) % SIZE == 0, s, -1.0e30)


@weft.jit
def masked_keys(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return tl.where(tl.load(extra + columns, columns < SIZE, 0)[None, :] != 0, s, -1.0e30)


@weft.jit
def masked(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    at = extra + rows[:, None] * SIZE + columns[None, :]
    return tl.where(tl.load(at, (rows[:, None] < SIZE) & (columns[None, :] < SIZE), 0) != 0, s, -1.0e30)


@weft.jit
def block_mask(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    at = rows[:, None] // 16 * SIZE + columns[None, :] // 16
    return tl.where(tl.load(extra + at, at < SIZE * SIZE, 0) != 0, s, -1.0e30)


@weft.jit
def sink_and_window(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    near = rows[:, None] - columns[None, :] < SIZE
    return tl.where((near | (columns[None, :] < 4)) & (columns[None, :] <= rows[:, None]), s, -1.0e30)


@weft.jit
def checkered(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return tl.where((rows[:, None] // SIZE + columns[None, :] // SIZE) % 2 == 0, s, -1.0e30)


@weft.jit
def logarithmic(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return s * (tl.log2(rows.to(tl.float32) + 2) / SIZE)[:, None]


@weft.jit
def capped_causal_alibi(s, rows, columns, head, extra, keys, SIZE: tl.constexpr):
    return capped(alibi(s, rows, columns, head, extra, keys, 8), rows, columns, head, extra, keys, SIZE)


Change = Callable[[Any, int, Any, Any], Any]


@dataclass
class Scored:
    case: Attention
    change: Change | None = None


def _random(*shape: int) -> np.ndarray:
    found = aligned(shape, np.float32)
    found[...] = np.random.default_rng(7).standard_normal(shape)
    return found


def _bytes(array: Any) -> np.ndarray:
    found = aligned(np.shape(array), np.uint8)
    found[...] = array
    return found


BIAS, KEYS, ROWS, FAR = _random(2, N, N), _random(N), np.abs(_random(N)) + 0.5, _random(2 * N)
ROWS_ALIGNED = aligned((N,), np.float32)
ROWS_ALIGNED[...] = ROWS
DOCUMENTS = aligned((N,), np.int32)
DOCUMENTS[...] = np.arange(N) // 70
PRESENT = _bytes(np.arange(N) % 3 != 1)
MASK = _bytes((np.arange(N)[:, None] * 7 + np.arange(N)[None, :] * 3) % 5 != 0)
BLOCKS = _bytes((np.arange(13)[:, None] + np.arange(13)[None, :]) % 3 != 1)


def _cap(s: Any, size: float) -> Any:
    return size * np.tanh(s / size)


def _where(condition: Callable[[Any, Any], Any]) -> Change:
    return lambda s, head, rows, columns: np.where(condition(rows, columns), s, NEVER)


SCORED: dict[str, Scored] = {
    "bias": Scored(Attention(N, heads=2, score=bias, size=N, extra=BIAS), lambda s, h, r, c: s + BIAS[h]),
    "bias, causal": Scored(
        Attention(N, heads=2, score=bias, size=N, extra=BIAS, causal=True), lambda s, h, r, c: s + BIAS[h]
    ),
    "bias of keys": Scored(Attention(N, score=bias_of_keys, size=N, extra=KEYS), lambda s, h, r, c: s + KEYS),
    "temperature of rows": Scored(
        Attention(N, score=bias_of_rows, size=N, extra=ROWS_ALIGNED), lambda s, h, r, c: s * ROWS[:, None]
    ),
    "relative positions": Scored(
        Attention(N, score=relative, size=N, extra=FAR), lambda s, h, r, c: s + FAR[r - c + N]
    ),
    "buckets of distances": Scored(
        Attention(N, score=bucketed, extra=KEYS), lambda s, h, r, c: s + KEYS[np.minimum(np.abs(r - c) // 16, 7)]
    ),
    "cap": Scored(Attention(N, score=capped, size=5), lambda s, h, r, c: _cap(s, 5)),
    "cap, causal": Scored(Attention(N, score=capped, size=5, causal=True), lambda s, h, r, c: _cap(s, 5)),
    "ALiBi": Scored(
        Attention(N, heads=2, score=alibi, size=8), lambda s, h, r, c: s - 2.0 ** (-(h + 1.0)) * np.abs(r - c)
    ),
    "ALiBi of a table": Scored(
        Attention(N, heads=2, score=alibi_of_table, extra=ROWS_ALIGNED), lambda s, h, r, c: s - ROWS[h] * np.abs(r - c)
    ),
    "cap, ALiBi, causal": Scored(
        Attention(N, heads=2, score=capped_causal_alibi, size=20, causal=True),
        lambda s, h, r, c: _cap(s - 2.0 ** (-(h + 1.0)) * np.abs(r - c), 20),
    ),
    "window behind, causal": Scored(Attention(N, window=50, causal=True)),
    "window behind, cap": Scored(
        Attention(N, window=90, causal=True, score=capped, size=5), lambda s, h, r, c: _cap(s, 5)
    ),
    "window both ways": Scored(Attention(N, score=window_both_ways, size=40), _where(lambda r, c: np.abs(r - c) <= 40)),
    "prefix": Scored(Attention(N, score=prefix, size=70), _where(lambda r, c: (c <= r) | (c < 70))),
    "documents": Scored(
        Attention(N, score=documents, size=N, extra=DOCUMENTS), _where(lambda r, c: r // 70 == c // 70)
    ),
    "documents, causal": Scored(
        Attention(N, score=documents, size=N, extra=DOCUMENTS, causal=True), _where(lambda r, c: r // 70 == c // 70)
    ),
    "dilated": Scored(Attention(N, score=dilated, size=3), _where(lambda r, c: (r - c) % 3 == 0)),
    "padded keys": Scored(Attention(N, score=masked_keys, size=N, extra=PRESENT), _where(lambda r, c: PRESENT[c] != 0)),
    "mask": Scored(Attention(N, score=masked, size=N, extra=MASK), _where(lambda r, c: MASK != 0)),
    "mask of blocks": Scored(
        Attention(N, score=block_mask, size=13, extra=BLOCKS), _where(lambda r, c: BLOCKS[r // 16, c // 16] != 0)
    ),
    "first keys and a window": Scored(
        Attention(N, score=sink_and_window, size=30), _where(lambda r, c: ((r - c < 30) | (c < 4)) & (c <= r))
    ),
    "checkered": Scored(Attention(N, score=checkered, size=8), _where(lambda r, c: (r // 8 + c // 8) % 2 == 0)),
    "by the logarithm of the row": Scored(
        Attention(N, score=logarithmic, size=4), lambda s, h, r, c: s * np.log2(r + 2.0) / 4
    ),
    "grouped heads": Scored(Attention(N, heads=4, group=2)),
    "one head of keys": Scored(Attention(N, heads=4, group=4, causal=True)),
    "rows after keys": Scored(Attention(72, keys=N)),
    "head 32": Scored(Attention(N, head=32)),
    "head 128, f16, bias": Scored(
        Attention(N, head=128, heads=2, kind="f16", score=bias, size=N, extra=BIAS), lambda s, h, r, c: s + BIAS[h]
    ),
    "8 warps, causal, cap": Scored(
        Attention(N, head=128, block=(128, 64), warps=8, causal=True, score=capped, size=5),
        lambda s, h, r, c: _cap(s, 5),
    ),
}


# -- kernels of another structure -------------------------------------------------------------------------------------


@weft.jit
def step(s, value, acc, m, total):
    """Softmax of another block of scores."""
    new = tl.maximum(m, tl.max(s, 1))
    p, shrink = tl.exp2(s - new[:, None]), tl.exp2(m - new)
    return tl.dot(p.to(value.dtype), value, acc * shrink[:, None]), new, total * shrink + tl.sum(p, 1)


@weft.jit
def put(o, acc, total):
    i, j = tl.arange(0, acc.shape[0]), tl.arange(0, acc.shape[1])
    tl.store(o + i[:, None] * acc.shape[1] + j[None, :], acc / total[:, None])


@weft.jit
def begin(M: tl.constexpr, D: tl.constexpr):
    return tl.zeros((M, D), tl.float32), tl.full((M,), -1.0e30, tl.float32), tl.zeros((M,), tl.float32)


@weft.jit
def sinks(q, k, v, o, extra, n, scale):
    """A sum that begins with what no key has."""
    acc, m, total = begin(64, 64)
    m = tl.zeros((64,), tl.float32) + tl.load(extra)
    total += 1.0
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def packed(q, k, v, o, extra, n, scale):
    """Keys of one of several sequences behind each other: where it begins and ends is loaded."""
    acc, m, total = begin(64, 64)
    first, last = tl.load(extra), tl.load(extra + 1)
    mine = q.load([0, 0])
    for at in tl.range(first, last, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        s = tl.where((at + tl.arange(0, 64) < last)[None, :], s, -1.0e30)
        acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def paged(q, k, v, o, extra, n, scale):
    """Where a block of keys lies is loaded."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n // 64, warp_specialize=True):
        page = tl.load(extra + at) * 64
        s = tl.dot(mine, k.load([page, 0]).T) * scale
        acc, m, total = step(s, v.load([page, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def skipping(q, k, v, o, extra, n, scale):
    """Blocks of keys that a table has are left out."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        if tl.load(extra + at // 64) != 0:
            s = tl.dot(mine, k.load([at, 0]).T) * scale
            acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def backwards(q, k, v, o, extra, n, scale):
    """The last keys first."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([n - 64 - at, 0]).T) * scale
        acc, m, total = step(s, v.load([n - 64 - at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def carried_rows(q, k, v, o, extra, n, scale):
    """The row of keys and values is carried."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    row = 0
    for _ in tl.range(0, n // 64, warp_specialize=True):
        s = tl.dot(mine, k.load([row, 0]).T) * scale
        acc, m, total = step(s, v.load([row, 0]), acc, m, total)
        row += 64
    put(o, acc, total)


@weft.jit
def one_for_both(q, k, v, o, extra, n, scale):
    """Keys are values too."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        both = k.load([at, 0])
        acc, m, total = step(tl.dot(mine, both.T) * scale, both, acc, m, total)
    put(o, acc, total)


@weft.jit
def two_parts(q, k, v, o, extra, n, scale):
    """Scores are two products: of what has positions, and of what has none."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, v.load([at, 0]).T, tl.dot(mine, k.load([at, 0]).T)) * scale
        acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def linear(q, k, v, o, extra, n, scale):
    """No softmax: scores as they are."""
    acc = tl.zeros((64, 64), tl.float32)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        acc = tl.dot(s.to(v.dtype), v.load([at, 0]), acc)
    put(o, acc, tl.full((64,), 1.0, tl.float32))


@weft.jit
def sigmoid(q, k, v, o, extra, n, scale):
    """Each score for itself."""
    acc = tl.zeros((64, 64), tl.float32)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        p = 1 / (1 + tl.exp2(-scale * tl.dot(mine, k.load([at, 0]).T)))
        acc = tl.dot(p.to(v.dtype), v.load([at, 0]), acc)
    put(o, acc, tl.full((64,), 1.0, tl.float32))


@weft.jit
def two_passes(q, k, v, o, extra, n, scale):
    """The greatest score and the sum first, by a loop of one product; then the products."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        new = tl.maximum(m, tl.max(s, 1))
        total = total * tl.exp2(m - new) + tl.sum(tl.exp2(s - new[:, None]), 1)
        m = new
    for at in tl.range(0, n, 64, warp_specialize=True):
        p = tl.exp2(tl.dot(mine, k.load([at, 0]).T) * scale - m[:, None])
        acc = tl.dot(p.to(v.dtype), v.load([at, 0]), acc)
    put(o, acc, total)


@weft.jit
def two_halves(q, k, v, o, extra, n, scale):
    """Keys without a mask, then keys with one: two loops, whose buffers are the same."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n - 128, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    for at in tl.range(n - 128, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        s = tl.where((at + tl.arange(0, 64))[None, :] < n, s, -1.0e30)
        acc, m, total = step(s, v.load([at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def dropped(q, k, v, o, extra, n, scale):
    """Some weights are left out, by random numbers."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        new = tl.maximum(m, tl.max(s, 1))
        p, shrink = tl.exp2(s - new[:, None]), tl.exp2(m - new)
        total = total * shrink + tl.sum(p, 1)
        p = tl.where(tl.rand(3, i * n + at + j) < 2.0, p, 0.0)
        acc = tl.dot(p.to(v.dtype), v.load([at, 0]), acc * shrink[:, None])
        m = new
    put(o, acc, total)


@weft.jit
def kept_for_later(q, k, v, o, extra, n, scale):
    """The greatest score of each block goes to memory."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        acc, m, total = step(s, v.load([at, 0]), acc, m, total)
        tl.store(extra + at + tl.arange(0, 64), m)
    put(o, acc, total)


@weft.jit
def by_pointers(q, k, v, o, extra, n, scale):
    """Values by pointers."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        acc, m, total = step(s, tl.load(v + (at + i) * 64 + j), acc, m, total)
    put(o, acc, total)


@weft.jit
def made_inside(q, k, v, o, extra, n, scale):
    """The descriptor of values is made by the kernel."""
    acc, m, total = begin(64, 64)
    mine = q.load([0, 0])
    values = tl.make_tensor_descriptor(v, [n, 64], [64, 1], [64, 64])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        acc, m, total = step(s, values.load([at, 0]), acc, m, total)
    put(o, acc, total)


@weft.jit
def persistent(q, k, v, o, extra, n, scale):
    """Several tiles one after the other, here the same one twice."""
    for _ in range(2):
        acc, m, total = begin(64, 64)
        mine = q.load([0, 0])
        for at in tl.range(0, n, 64, warp_specialize=True):
            s = tl.dot(mine, k.load([at, 0]).T) * scale
            acc, m, total = step(s, v.load([at, 0]), acc, m, total)
        put(o, acc, total)


@weft.jit
def gradient_of_queries(q, k, v, o, extra, n, scale):
    """Of three products: p = sigmoid(q k^T), the gradient is (q v^T * p * (1 - p)) k."""
    acc = tl.zeros((64, 64), tl.float32)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        key = k.load([at, 0])
        p = 1 / (1 + tl.exp2(-scale * tl.dot(mine, key.T)))
        grown = tl.dot(mine, v.load([at, 0]).T) * p * (1 - p)
        acc = tl.dot(grown.to(k.dtype), key, acc)
    put(o, acc, tl.full((64,), 1.0, tl.float32))


@weft.jit
def weights_used_twice(q, k, v, o, extra, n, scale):
    """Two sums of values by the same weights."""
    acc, other = tl.zeros((64, 64), tl.float32), tl.zeros((64, 64), tl.float32)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        s = tl.dot(mine, k.load([at, 0]).T) * scale
        p = (1 / (1 + tl.exp2(-s))).to(v.dtype)
        acc = tl.dot(p, v.load([at, 0]), acc)
        other = tl.dot(p, k.load([at, 0]), other)
    put(o, acc + other, tl.full((64,), 1.0, tl.float32))


@weft.jit
def sum_looked_at(q, k, v, o, extra, n, scale):
    """What is made between the products needs the sum of the products before."""
    acc = tl.zeros((64, 64), tl.float32)
    mine = q.load([0, 0])
    for at in tl.range(0, n, 64, warp_specialize=True):
        p = 1 / (1 + tl.exp2(-scale * tl.dot(mine, k.load([at, 0]).T)))
        p = tl.where(tl.sum(acc, 1)[:, None] > -1.0e30, p, 0.0)
        acc = tl.dot(p.to(v.dtype), v.load([at, 0]), acc)
    put(o, acc, tl.full((64,), 1.0, tl.float32))


KERNEL_N = 320


def _softmax(s: Any, v: Any) -> Any:
    p = np.exp2(s - s.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True) @ v


def _with_none(v: Any) -> Any:
    """Values and one that is 0."""
    return np.pad(v, ((0, 1), (0, 0)))


def _sigmoid(s: Any) -> Any:
    return 1 / (1 + np.exp2(-s))


PAGES = aligned((5,), np.int32)
PAGES[...] = [3, 0, 4, 1, 2]
ENDS = aligned((2,), np.int32)
ENDS[...] = [72, 251]
LEFT = aligned((5,), np.int32)
LEFT[...] = [1, 0, 1, 1, 0]
SKIPPED = np.r_[64:128, 256:320]
SINK = aligned((1,), np.float32)
SINK[...] = 3.5


@dataclass
class Kernel:
    """A kernel of 64 rows and 320 keys; what it gives of scores, keys and values; why its loop stays, if it does."""

    kernel: Any
    exact: Callable[[Any, Any, Any, Any], Any]
    """Of queries, scores, keys, values."""
    extra: Any = field(default_factory=lambda: aligned((KERNEL_N,), np.float32))
    stays: str = ""
    pointers: bool = False

    def run(self, stages: int = 2) -> tuple[np.ndarray, np.ndarray, Any]:
        """What it gives, what is right, and the kernel."""
        rng = np.random.default_rng(1)
        arrays = []
        for rows in (64, KERNEL_N, KERNEL_N):
            array = aligned((rows, 64), DTYPES["f16"])
            array[...] = rng.standard_normal(array.shape).astype(np.float16)
            arrays.append(array)
        o = aligned((64, 64), np.float32)
        q, k, v = (described(x, (64, 64)) for x in arrays)
        scale = LOG2E / 8
        sides = (q, k, arrays[2] if self.pointers else v)
        made = simulated(self.kernel, (1,), *sides, o, self.extra, KERNEL_N, scale, num_warps=4, num_stages=stages)
        x, y, z = (a.astype(np.float64) for a in arrays)
        return o, self.exact(x, x @ y.T * scale, y, z), made


LOADED = "the addresses of an operand depend on values that the loop loads or carries"
KERNELS: dict[str, Kernel] = {
    "sinks": Kernel(
        sinks, lambda q, s, k, v: _softmax(np.pad(s, ((0, 0), (0, 1)), constant_values=3.5), _with_none(v)),
        SINK,
    ),
    "packed lengths": Kernel(packed, lambda q, s, k, v: _softmax(s[:, 72:251], v[72:251]), ENDS),
    "paged keys": Kernel(paged, lambda q, s, k, v: _softmax(s, v), PAGES, stays=LOADED),
    "blocks skipped": Kernel(
        skipping, lambda q, s, k, v: _softmax(np.delete(s, SKIPPED, 1), np.delete(v, SKIPPED, 0)),
        LEFT, stays="a product is inside a branch",
    ),
    "last keys first": Kernel(backwards, lambda q, s, k, v: _softmax(s, v)),
    "rows carried": Kernel(carried_rows, lambda q, s, k, v: _softmax(s, v)),
    "keys are values": Kernel(one_for_both, lambda q, s, k, v: _softmax(s, k)),
    "scores of two parts": Kernel(two_parts, lambda q, s, k, v: _softmax(s + q @ v.T * LOG2E / 8, v)),
    "linear": Kernel(linear, lambda q, s, k, v: s @ v),
    "sigmoid": Kernel(sigmoid, lambda q, s, k, v: _sigmoid(s) @ v),
    "two passes": Kernel(two_passes, lambda q, s, k, v: _softmax(s, v)),
    "two halves": Kernel(two_halves, lambda q, s, k, v: _softmax(s, v)),
    "dropped weights": Kernel(dropped, lambda q, s, k, v: _softmax(s, v)),
    "stores in the loop": Kernel(kept_for_later, lambda q, s, k, v: _softmax(s, v)),
    "values by pointers": Kernel(by_pointers, lambda q, s, k, v: _softmax(s, v), pointers=True),
    "descriptor made inside": Kernel(made_inside, lambda q, s, k, v: _softmax(s, v), pointers=True),
    "persistent": Kernel(persistent, lambda q, s, k, v: _softmax(s, v)),
    "gradient of queries": Kernel(
        gradient_of_queries, lambda q, s, k, v: (q @ v.T * _sigmoid(s) * (1 - _sigmoid(s))) @ k
    ),
    "weights used twice": Kernel(weights_used_twice, lambda q, s, k, v: _sigmoid(s) @ (v + k)),
    "sum looked at": Kernel(sum_looked_at, lambda q, s, k, v: _sigmoid(s) @ v),
}  # fmt: skip
