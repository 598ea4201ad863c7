"""The kernels of `gpu.py`, loaded once for each side: `sides.jit` and `sides.tl` are then Weft's or Triton's."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def copy_1d(x, out, n, BLOCK: tl.constexpr):
    """out = x."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """out = x + y."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """Of each row."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@jit
def layer_norm(x, out, weight, bias, columns, eps, BLOCK: tl.constexpr):
    """Of each row."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row * columns + i, mask=mask, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w, b = tl.load(weight + i, mask=mask), tl.load(bias + i, mask=mask)
    tl.store(out + row * columns + i, centred * scale * w + b, mask=mask)


@jit
def transpose(x, out, m, n, BLOCK: tl.constexpr):
    """out = x.T, tile by tile."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * n + j[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile))


@jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """c = a @ b; sizes are multiples of the blocks."""
    pid = tl.program_id(0)
    rows, columns = M // BM, N // BN
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    m = first + pid % (GROUP * columns) % size
    n = pid % (GROUP * columns) // size
    i = m * BM + tl.arange(0, BM)
    j = n * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + i[:, None] * K + k[None, :]
    pb = b + k[:, None] * N + j[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK * N
    tl.store(c + i[:, None] * N + j[None, :], acc.to(c.dtype.element_ty))


@jit
def nothing(a, b, c, n, m, k):
    """What a launch costs with six arguments."""


@jit
def nothing_19(a, b, c, d, e, f, g, n0, n1, n2, n3, n4, n5, n6, n7, n8, n9, n10, n11):
    """What a launch costs with nineteen."""


@jit
def nothing_named(a, b, c, n, m, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """What a launch costs with six arguments, and four constants by keyword."""
