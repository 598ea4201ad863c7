"""Kernels with parameters to tune, for tune_ranks.py."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@jit
def transpose(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    tile = tl.load(x + i[:, None] * columns + j[None, :])
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile))


@jit
def row_sums(x, out, columns, ROWS: tl.constexpr, PART: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, PART), tl.float32)
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)
        total += tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
    tl.store(out + i, tl.sum(total, 1))


@jit
def column_sums(x, out, rows, columns, PART: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((PART, BLOCK), tl.float32)
    for start in range(0, rows, PART):
        i = start + tl.arange(0, PART)
        total += tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
    tl.store(out + j, tl.sum(total, 0))


@jit
def softmax(x, out, columns, ROWS: tl.constexpr, PART: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    top = tl.full((ROWS,), -1.0e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)
        value = tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
        new = tl.maximum(top, tl.max(value, 1))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(value - new[:, None]), 1)
        top = new
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)
        value = tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
        y = tl.exp(value - top[:, None]) / total[:, None]
        tl.store(out + i[:, None] * columns + j[None, :], y.to(out.dtype.element_ty))


@jit
def rms_norm(x, weight, out, columns, ROWS: tl.constexpr, PART: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, PART), tl.float32)
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)
        value = tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
        total += value * value
    scale = tl.rsqrt(tl.sum(total, 1) / columns + 1.0e-6)
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)
        value = tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
        y = value * scale[:, None] * tl.load(weight + j)[None, :].to(tl.float32)
        tl.store(out + i[:, None] * columns + j[None, :], y.to(out.dtype.element_ty))


@jit
def times_vector(x, y, out, columns, ROWS: tl.constexpr, PART: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, PART), tl.float32)
    for start in range(0, columns, PART):
        j = start + tl.arange(0, PART)
        left = tl.load(x + i[:, None] * columns + j[None, :]).to(tl.float32)
        total += left * tl.load(y + j)[None, :].to(tl.float32)
    tl.store(out + i, tl.sum(total, 1))


@jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid, rows, columns = tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (8 * columns) * 8
    height = min(rows - first, 8)
    m = (first + pid % (8 * columns) % height) * BM + tl.arange(0, BM)
    n = pid % (8 * columns) // height * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))
