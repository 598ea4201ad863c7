"""Kernels of serving and training that go beyond one tile a program, for `gpu_wider.py`."""

# mypy: ignore-errors
from sides import jit, libdevice, tl


@jit
def place_of(tile, rows, columns, GROUP: tl.constexpr):
    """Row and column of a tile, GROUP rows of tiles at a time."""
    first = tile // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    return first + tile % height, tile % (GROUP * columns) // height


@jit
def persistent(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BLOCKS: tl.constexpr):
    """c = a @ b, as many programs as there are multiprocessors, each tile after tile."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    k = tl.arange(0, BK)
    for tile in tl.range(tl.program_id(0), rows * columns, BLOCKS, flatten=True):
        row, column = place_of(tile, rows, columns, 8)
        m, n = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN)
        left = tl.max_contiguous(tl.multiple_of(tl.where(m < M, m, 0), BM), BM)
        right = tl.max_contiguous(tl.multiple_of(tl.where(n < N, n, 0), BN), BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            at = step * BK + k
            x = tl.load(a + left[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
            y = tl.load(b + at[:, None] * N + right[None, :], mask=at[:, None] < K, other=0.0)
            acc = tl.dot(x, y, acc)
        tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])


@jit
def persistent_described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BLOCKS: tl.constexpr):
    """The same, of a and the transpose of b, by descriptors made in the kernel."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    result = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), rows * columns, BLOCKS, flatten=True):
        row, column = place_of(tile, rows, columns, 8)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(K, BK)):
            x = left.load([row * BM, step * BK])
            acc = tl.dot(x, right.load([column * BN, step * BK]).T, acc)
        result.store([row * BM, column * BN], acc.to(c.dtype.element_ty))


@jit
def split_product(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    """c += a @ b of few rows; each program a part of the sum."""
    m, n = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(tl.cdiv(K, BK * SPLIT)):
        x, y = tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc)
        k += BK * SPLIT
    tl.atomic_add(c + m[:, None] * N + n[None, :], acc, sem="relaxed")


@jit
def small_products(a, b, c, SIDE: tl.constexpr):
    """A product of small matrices for each program."""
    i, j = tl.arange(0, SIDE)[:, None], tl.arange(0, SIDE)[None, :]
    at = tl.program_id(0).to(tl.int64) * SIDE * SIDE + i * SIDE + j
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@jit
def capped_attention(q, k, v, out, scale, cap, n, WINDOW, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Attention to the last WINDOW positions, scores bent by tanh."""
    head = tl.program_id(1).to(tl.int64) * n * HEAD
    start = tl.program_id(0) * BM
    m, d = start + tl.arange(0, BM), tl.arange(0, HEAD)
    query = tl.load(q + head + m[:, None] * HEAD + d[None, :])
    acc = tl.zeros((BM, HEAD), tl.float32)
    total, top = tl.zeros((BM,), tl.float32), tl.full((BM,), -1.0e30, tl.float32)
    first = tl.maximum(start - WINDOW, 0) // BN * BN
    for position in range(first, start + BM, BN):
        j = position + tl.arange(0, BN)
        key = tl.load(k + head + j[None, :] * HEAD + d[:, None])
        scores = cap * libdevice.tanh(tl.dot(query, key) * scale / cap)
        seen = (m[:, None] >= j[None, :]) & (m[:, None] - j[None, :] < WINDOW)
        scores = tl.where(seen, scores * 1.4426950408889634, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        value = tl.load(v + head + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        top = new
    tl.store(out + head + m[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@jit
def biased_attention(q, k, v, bias, out, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Attention where each key has a number that is added to its scores, of which `scale` is in base 2."""
    head = tl.program_id(1).to(tl.int64) * n * HEAD
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, HEAD)
    query = tl.load(q + head + m[:, None] * HEAD + d[None, :])
    query = (query * scale).to(query.dtype)
    acc = tl.zeros((BM, HEAD), tl.float32)
    total, top = tl.zeros((BM,), tl.float32), tl.full((BM,), -1.0e30, tl.float32)
    for position in range(0, n, BN):
        j = position + tl.arange(0, BN)
        key = tl.load(k + head + j[None, :] * HEAD + d[:, None])
        scores = tl.dot(query, key) + tl.load(bias + j)[None, :]
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        value = tl.load(v + head + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        top = new
    tl.store(out + head + m[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@jit
def combine_parts(parts, logs, out, PARTS: tl.constexpr, HEAD: tl.constexpr):
    """What several programs found of attention, each weighed by the logarithm of its sum."""
    row = tl.program_id(0).to(tl.int64)
    p, d = tl.arange(0, PARTS), tl.arange(0, HEAD)
    log = tl.load(logs + row * PARTS + p)
    weight = tl.exp(log - tl.max(log, 0))
    value = tl.load(parts + (row * PARTS + p[:, None]) * HEAD + d[None, :])
    found = tl.sum(value * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(out + row * HEAD + d, found.to(out.dtype.element_ty))


@jit
def merge(mean, spread, count, mean2, spread2, count2):
    """Mean and sum of squares of two parts together (Chan, Golub and LeVeque)."""
    both = count + count2
    apart = mean2 - mean
    share = tl.where(both == 0.0, 0.0, count2 / both)
    return mean + apart * share, spread + spread2 + apart * apart * count * share, both


@jit
def group_norm(x, weight, bias, out, size, channels, eps, BLOCK: tl.constexpr):
    """Each group of channels of an image to mean 0 and variance 1."""
    group = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    mean, spread = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        value = tl.load(x + group * size + start + i, mask=start + i < size, other=0.0).to(tl.float32)
        here = tl.where(start + i < size, 1.0, 0.0)
        mean, spread, count = merge(mean, spread, count, value, tl.zeros_like(value), here)
    mean, spread, count = tl.reduce((mean, spread, count), 0, merge)
    scale = 1 / tl.sqrt(spread / count + eps)
    pixels = size // channels
    first = group % 8 * channels
    for start in range(0, size, BLOCK):
        here = start + i < size
        value = tl.load(x + group * size + start + i, mask=here, other=0.0).to(tl.float32)
        channel = first + (start + i) // pixels
        w, b = tl.load(weight + channel, mask=here), tl.load(bias + channel, mask=here)
        found = ((value - mean) * scale * w + b).to(out.dtype.element_ty)
        tl.store(out + group * size + start + i, found, mask=here)


@jit
def causal_taps(x, taps, out, length, channels, WIDTH: tl.constexpr, BLOCK: tl.constexpr, CHANNELS: tl.constexpr):
    """Each channel convolved with WIDTH taps of its own along time, then silu."""
    t = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    base = tl.program_id(2).to(tl.int64) * length * channels
    acc = tl.zeros((BLOCK, CHANNELS), tl.float32)
    for w in tl.static_range(WIDTH):
        at = t + w - (WIDTH - 1)
        value = tl.load(x + base + at[:, None] * channels + c[None, :], mask=(at >= 0)[:, None], other=0.0)
        acc += value.to(tl.float32) * tl.load(taps + c * WIDTH + w)[None, :]
    found = acc * tl.sigmoid(acc)
    tl.store(out + base + t[:, None] * channels + c[None, :], found.to(out.dtype.element_ty))


@jit
def to_fp8(x, out, scales, columns, GROUPS: tl.constexpr, SIZE: tl.constexpr):
    """Groups of SIZE numbers of a row as fp8, with a scale each."""
    row = tl.program_id(0).to(tl.int64)
    g, i = tl.program_id(1) * GROUPS + tl.arange(0, GROUPS), tl.arange(0, SIZE)
    at = row * columns + g[:, None] * SIZE + i[None, :]
    value = tl.load(x + at).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(value), 1), 1e-10) / 448.0
    tl.store(out + at, (value / scale[:, None]).to(tl.float8e4nv))
    tl.store(scales + row * (columns // SIZE) + g, scale)


@jit
def into_pages(key, value, keys, values, slots, SIZE: tl.constexpr):
    """The keys and values of a token to its slot of a cache."""
    token = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + token).to(tl.int64)
    i = tl.arange(0, SIZE)
    if slot >= 0:
        tl.store(keys + slot * SIZE + i, tl.load(key + token * SIZE + i))
        tl.store(values + slot * SIZE + i, tl.load(value + token * SIZE + i))


@jit
def online_loss(x, target, out, columns, BLOCK: tl.constexpr):
    """Cross entropy of long rows, a block at a time."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    top, total = float("-inf"), 0.0
    for start in range(0, columns, BLOCK):
        value = tl.load(x + row * columns + start + i, mask=start + i < columns, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(value, 0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(value - new), 0)
        top = new
    picked = tl.load(x + row * columns + tl.load(target + row)).to(tl.float32)
    tl.store(out + row, top + tl.log(total) - picked)


@jit
def highest(x, out, columns, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """The COUNT greatest numbers of each row, in order."""
    row = tl.program_id(0).to(tl.int64)
    value = tl.load(x + row * columns + tl.arange(0, BLOCK))
    tl.store(out + row * COUNT + tl.arange(0, COUNT), tl.topk(value, COUNT))


@jit
def decays(x, out, length, CHUNK: tl.constexpr, HEADS: tl.constexpr):
    """Sums of decays within a chunk of time, for many heads, as exponentials."""
    t, h = tl.program_id(0).to(tl.int64) * CHUNK + tl.arange(0, CHUNK), tl.arange(0, HEADS)
    at = t[:, None] * HEADS + h[None, :]
    value = tl.load(x + at, mask=(t < length)[:, None], other=0.0)
    tl.store(out + at, tl.exp(tl.cumsum(-tl.abs(value), 0)), mask=(t < length)[:, None])
