"""Kernels that the tests of explanations explain: none of them is written to be fast."""

from __future__ import annotations

import weft
import weft.language as tl

__all__ = ["attention", "histogram", "matmul", "reduction", "softmax", "transpose"]


@weft.jit
def softmax(x, out, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + row * stride + i, mask=mask, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * stride + i, value / tl.sum(value, axis=0), mask=mask)


@weft.jit
def transpose(x, out, stride, SIZE: tl.constexpr):
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)[:, None]
    j = tl.program_id(1) * SIZE + tl.arange(0, SIZE)[None, :]
    tile = tl.load(x + i * stride + j)
    tl.store(out + j * stride + i, tile)


@weft.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + i * K + start + k[None, :])
        right = tl.load(b + (start + k[:, None]) * N + j)
        total += tl.dot(left, right)
    tl.store(c + i * N + j, total.to(tl.float16))


@weft.jit
def attention(q, k, v, out, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    head = tl.arange(0, HEAD)
    columns = tl.arange(0, BN)
    base = tl.program_id(1) * n * HEAD
    query = tl.load(q + base + rows[:, None] * HEAD + head[None, :])
    largest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    result = tl.zeros((BM, HEAD), tl.float32)
    for start in range(0, n, BN):
        key = tl.load(k + base + (start + columns)[None, :] * HEAD + head[:, None])
        value = tl.load(v + base + (start + columns)[:, None] * HEAD + head[None, :])
        score = tl.dot(query, key) * scale
        larger = tl.maximum(largest, tl.max(score, 1))
        part = tl.exp2(score - larger[:, None])
        factor = tl.exp2(largest - larger)
        total = total * factor + tl.sum(part, 1)
        result = result * factor[:, None] + tl.dot(part.to(tl.float16), value)
        largest = larger
    tl.store(out + base + rows[:, None] * HEAD + head[None, :], (result / total[:, None]).to(tl.float16))


@weft.jit
def reduction(x, out, rows, columns, BLOCK: tl.constexpr, PART: tl.constexpr):
    """As PyTorch's Inductor writes the mean of rows: a loop over the row, a sum of each lane's, and one at the end."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    within = i < rows
    total = tl.full((BLOCK, PART), 0, tl.float32)
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)[None, :]
        mask = within & (j < columns)
        value = tl.load(x + i * columns + j, mask=mask, other=0.0)
        total = tl.where(mask, total + value, total)
    mean = tl.sum(total, 1)[:, None] / columns
    tl.store(out + i, mean, mask=within)


@weft.jit
def histogram(x, bins, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(bins + tl.load(x + i), 1)
