"""Products of serving and training, for `gpu_wider.py`: `sides.jit` and `sides.tl` are Weft's or Triton's."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def exact_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b in f32, by single multiplications."""
    columns = tl.cdiv(N, BN)
    i, j = tl.program_id(0) // columns * BM, tl.program_id(0) % columns * BN
    m, n, k = i + tl.arange(0, BM), j + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + m[:, None] * N + n[None, :], acc)


@jit
def exact_attention(q, k, v, out, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """softmax(q k^T) v in f32, by single multiplications."""
    head = tl.program_id(1).to(tl.int64) * n * HEAD
    m, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, HEAD)
    query = tl.load(q + head + m[:, None] * HEAD + d[None, :])
    acc = tl.zeros((BM, HEAD), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1.0e30, tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        key = tl.load(k + head + j[None, :] * HEAD + d[:, None])
        scores = tl.dot(query, key, input_precision="ieee") * scale
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        value = tl.load(v + head + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(p, value, acc * shrink[:, None], input_precision="ieee")
        total = total * shrink + tl.sum(p, 1)
        top = new
    tl.store(out + head + m[:, None] * HEAD + d[None, :], acc / total[:, None])


@jit
def paged(q, keys, values, table, lengths, out, scale, heads, pages,
          HEAD: tl.constexpr, PAGE: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """Attention of a group of queries to keys and values whose pages are looked up."""
    sequence, h = tl.program_id(0), tl.program_id(1)
    g, d, t = tl.arange(0, GROUP), tl.arange(0, HEAD), tl.arange(0, PAGE)
    length = tl.load(lengths + sequence)
    place = ((sequence * heads + h) * GROUP + g)[:, None] * HEAD + d[None, :]
    query = tl.load(q + place)
    acc = tl.zeros((GROUP, HEAD), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    top = tl.full((GROUP,), -1.0e30, tl.float32)
    for p in range(tl.cdiv(length, PAGE)):
        base = (tl.load(table + sequence * pages + p).to(tl.int64) * heads + h) * PAGE * HEAD
        scores = tl.dot(query, tl.load(keys + base + t[None, :] * HEAD + d[:, None])) * scale
        scores = tl.where((p * PAGE + t)[None, :] < length, scores, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        w = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        value = tl.load(values + base + t[:, None] * HEAD + d[None, :])
        acc = tl.dot(w.to(value.dtype), value, acc * shrink[:, None])
        total = total * shrink + tl.sum(w, 1)
        top = new
    tl.store(out + place, (acc / total[:, None]).to(out.dtype.element_ty))


@jit
def linear_attention(q, k, v, out, n, D: tl.constexpr, C: tl.constexpr):
    """Causal attention without softmax, in chunks: the loop stores what it does not load."""
    base = tl.program_id(0).to(tl.int64) * n
    t, d = tl.arange(0, C), tl.arange(0, D)
    state = tl.zeros((D, D), tl.float32)
    for start in range(0, n, C):
        query = tl.load(q + (base + start + t)[:, None] * D + d[None, :])
        key = tl.load(k + (base + start + t)[None, :] * D + d[:, None])
        value = tl.load(v + (base + start + t)[:, None] * D + d[None, :])
        scores = tl.where(t[:, None] >= t[None, :], tl.dot(query, key), 0.0)
        found = tl.dot(scores.to(value.dtype), value) + tl.dot(query, state.to(query.dtype))
        state = tl.dot(key, value, state)
        tl.store(out + (base + start + t)[:, None] * D + d[None, :], found.to(out.dtype.element_ty))


@jit
def two_layers(x, w, u, out, hidden, D: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """relu(x @ w^T) @ u, a part of the hidden layer in each iteration."""
    m, d, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BK)
    value = tl.load(x + m[:, None] * D + d[None, :])
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, hidden, BK):
        middle = tl.dot(value, tl.load(w + (start + k)[None, :] * D + d[:, None]))
        middle = tl.maximum(middle, 0.0).to(value.dtype)
        acc = tl.dot(middle, tl.load(u + (start + k)[:, None] * D + d[None, :]), acc)
    tl.store(out + m[:, None] * D + d[None, :], acc.to(out.dtype.element_ty))


@jit
def grouped(addresses, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Products of matrices whose addresses are in a table, M of each one block; how wide rows are, only hints say."""
    group, j = tl.program_id(0), tl.program_id(1) * BN
    a = tl.load(addresses + group * 2).to(tl.pointer_type(tl.float16))
    b = tl.load(addresses + group * 2 + 1).to(tl.pointer_type(tl.float16))
    m, n, k = tl.arange(0, BM), j + tl.arange(0, BN), tl.arange(0, BK)
    left, right = a + m[:, None] * K + k[None, :], b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        tl.multiple_of(left, [16, 16])
        tl.multiple_of(right, [16, 16])
        acc += tl.dot(tl.load(left), tl.load(right))
        left += BK
        right += BK * N
    tl.store(out + (group * BM + m)[:, None] * N + n[None, :], acc.to(tl.float16))
