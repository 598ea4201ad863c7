"""The kernels of `gpu_wider.py`, loaded once for each side: `sides.jit` and `sides.tl` are then Weft's or Triton's."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def attention(
    q, k, v, out, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr
):  # fmt: skip
    """softmax(q k^T) v for one block of queries of one head."""
    first = tl.program_id(0) * BM
    head = tl.program_id(1).to(tl.int64) * n * HEAD
    m = first + tl.arange(0, BM)
    d = tl.arange(0, HEAD)
    query = tl.load(q + head + m[:, None] * HEAD + d[None, :])
    acc = tl.zeros((BM, HEAD), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    top = tl.full((BM,), -1.0e30, tl.float32)
    end = first + BM if CAUSAL else n
    for start in range(0, end, BN):
        j = start + tl.arange(0, BN)
        key = tl.load(k + head + j[None, :] * HEAD + d[:, None])
        scores = tl.dot(query, key) * scale
        if CAUSAL:
            scores = tl.where(m[:, None] >= j[None, :], scores, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        value = tl.load(v + head + j[:, None] * HEAD + d[None, :])
        acc = acc * shrink[:, None]
        acc = tl.dot(p.to(value.dtype), value, acc)
        total = total * shrink + tl.sum(p, 1)
        top = new
    tl.store(out + head + m[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out.dtype.element_ty))


@jit
def matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """c = leaky_relu(a @ b), masked along K, as the tutorial has it."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * columns)
    first = group * GROUP
    size = min(rows - first, GROUP)
    i = first + pid % (GROUP * columns) % size
    j = pid % (GROUP * columns) // size
    m = (i * BM + tl.arange(0, BM)) % M
    n = (j * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left = a + m[:, None] * K + k[None, :]
    right = b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(x, y, acc, out_dtype=ACC)
        left += BK
        right += BK * N
    acc = tl.where(acc >= 0, acc, acc * 2)
    m = i * BM + tl.arange(0, BM)
    n = j * BN + tl.arange(0, BN)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@jit
def matmul_bytes(x, w, scale, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = x @ (w * scale): weights of 8 bits, a scale for each column."""
    columns = tl.cdiv(N, BN)
    i, j = tl.program_id(0) // columns * BM, tl.program_id(0) % columns * BN
    m, n, k = i + tl.arange(0, BM), j + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, K, BK):
        value = tl.load(x + m[:, None] * K + (step + k)[None, :])
        weight = tl.load(w + (step + k)[:, None] * N + n[None, :])
        acc = tl.dot(value, weight.to(tl.float16), acc)
    acc *= tl.load(scale + n)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16))


@jit
def matmul_nibbles(x, w, scale, zero, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = x @ ((w - zero) * scale): eight weights of 4 bits in a word, scales and zeros for BK rows each."""
    columns = tl.cdiv(N, BN)
    i, j = tl.program_id(0) // columns * BM, tl.program_id(0) % columns * BN
    m, n, k = i + tl.arange(0, BM), j + tl.arange(0, BN), tl.arange(0, BK)
    shift = (k % 8 * 4)[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(K // BK):
        value = tl.load(x + m[:, None] * K + (step * BK + k)[None, :])
        packed = tl.load(w + ((step * BK + k) // 8)[:, None] * N + n[None, :])
        by = tl.load(scale + step * N + n)[None, :]
        base = tl.load(zero + step * N + n)[None, :]
        weight = ((packed >> shift & 15).to(tl.float16) - base) * by
        acc = tl.dot(value, weight, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(tl.float16))


@jit
def matmul_described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """c = a @ b^T through tensor descriptors made in the kernel."""
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    i = tl.program_id(0) // columns * BM
    j = tl.program_id(0) % columns * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(da.load([i, k]), db.load([j, k]).T, acc)
    dc.store([i, j], acc.to(tl.float16))


@jit
def rms_norm(x, w, out, columns, eps, BLOCK: tl.constexpr):
    """Of each row."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row + i, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
    weight = tl.load(w + i, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + row + i, (value * scale * weight).to(out.dtype.element_ty), mask=mask)


@jit
def layer_norm_in_passes(x, w, b, out, columns, eps, BLOCK: tl.constexpr):
    """Of each row, which is read three times, with hints to keep it for the next time, as Inductor writes them."""
    x += tl.program_id(0).to(tl.int64) * columns
    out += tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        value = tl.load(x + start + i, mask=start + i < columns, other=0.0, eviction_policy="evict_last")
        total += value.to(tl.float32)
    mean = tl.sum(total, 0) / columns
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        mask = start + i < columns
        value = tl.load(x + start + i, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        centred = tl.where(mask, value - mean, 0.0)
        squares += centred * centred
    scale = tl.rsqrt(tl.sum(squares, 0) / columns + eps)
    for start in range(0, columns, BLOCK):
        mask = start + i < columns
        value = tl.load(x + start + i, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
        weight = tl.load(w + start + i, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        bias = tl.load(b + start + i, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        tl.store(out + start + i, ((value - mean) * scale * weight + bias).to(out.dtype.element_ty), mask=mask)


@jit
def cross_entropy(x, label, loss, columns, BLOCK: tl.constexpr):
    """Of each row, in pieces, online."""
    row = tl.program_id(0).to(tl.int64)
    x += row * columns
    top = -1.0e30
    total = 0.0
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        value = tl.load(x + i, mask=i < columns, other=-1.0e30).to(tl.float32)
        new = tl.maximum(top, tl.max(value))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(value - new))
        top = new
    own = tl.load(x + tl.load(label + row)).to(tl.float32)
    tl.store(loss + row, tl.log(total) + top - own)


@jit
def column_sums(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    """out[j] = sum of x[:, j]."""
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, rows, BM):
        i = start + tl.arange(0, BM)
        acc += tl.load(x + i[:, None].to(tl.int64) * columns + j[None, :], mask=i[:, None] < rows, other=0.0)
    tl.store(out + j, tl.sum(acc, 0))


@jit
def cumsum(x, out, columns, BLOCK: tl.constexpr):
    """Along each row."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    tl.store(out + row + i, tl.cumsum(tl.load(x + row + i), 0))


@jit
def sorted_rows(x, out, columns, BLOCK: tl.constexpr):
    """Each row in order."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    tl.store(out + row + i, tl.sort(tl.load(x + row + i)))


@jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    """x / (1 - p) where a random number is above p."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    keep = tl.rand(seed, i) > p
    tl.store(out + i, tl.where(keep, value / (1 - p), 0.0), mask=i < n)


@jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    """x Phi(x)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, (0.5 * value * (1 + tl.erf(value * 0.7071067811865476))).to(out.dtype.element_ty), mask=i < n)


@jit
def rotary(x, cos, sin, out, length, heads, HALF: tl.constexpr):
    """The two halves of each head turned by the position's angle."""
    token = tl.program_id(0)
    at = tl.arange(0, HALF)
    c = tl.load(cos + token % length * HALF + at)
    s = tl.load(sin + token % length * HALF + at)
    for head in range(heads):
        base = (token.to(tl.int64) * heads + head) * 2 * HALF
        a = tl.load(x + base + at).to(tl.float32)
        b = tl.load(x + base + HALF + at).to(tl.float32)
        tl.store(out + base + at, (a * c - b * s).to(out.dtype.element_ty))
        tl.store(out + base + HALF + at, (b * c + a * s).to(out.dtype.element_ty))


@jit
def gathered(x, index, out, columns, BLOCK: tl.constexpr):
    """Rows of a table."""
    row = tl.load(index + tl.program_id(0)).to(tl.int64)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + i, mask=i < columns)
    tl.store(out + tl.program_id(0).to(tl.int64) * columns + i, value, mask=i < columns)


@jit
def histogram(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """How often each number comes."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.histogram(tl.load(x + i), BINS)
    tl.atomic_add(out + tl.arange(0, BINS), found)
