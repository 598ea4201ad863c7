"""More kernels of `gpu_wider.py`, of training and serving: `sides.jit` and `sides.tl` are Weft's or Triton's."""

# mypy: ignore-errors
from sides import jit, libdevice, tl


@jit
def linear(
    x, w, bias, out, M, N, K, sm, sk, wk, wn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    GROUP: tl.constexpr, RELU: tl.constexpr,
):  # fmt: skip
    """out = relu(x @ w + bias), with strides: w may be given by rows or by columns, x too."""
    pid = tl.program_id(0)
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    first = pid // (GROUP * columns) * GROUP
    size = min(rows - first, GROUP)
    i = first + pid % (GROUP * columns) % size
    j = pid % (GROUP * columns) // size
    m, n, k = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    left = x + (m % M)[:, None] * sm + k[None, :] * sk
    right = w + k[:, None] * wk + (n % N)[None, :] * wn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(tl.cdiv(K, BK)):
        a = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        b = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        left += BK * sk
        right += BK * wk
    acc += tl.load(bias + n, mask=n < N, other=0.0).to(tl.float32)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0)
    tl.store(out + m[:, None] * N + n[None, :], acc.to(out.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


@jit
def matvec(a, x, out, M, K, BM: tl.constexpr, BK: tl.constexpr):
    """out = a @ x."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BK), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        acc += tl.load(a + m[:, None] * K + k[None, :]).to(tl.float32) * tl.load(x + k).to(tl.float32)[None, :]
    tl.store(out + m, tl.sum(acc, 1).to(out.dtype.element_ty))


@jit
def experts(x, w, out, order, expert, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Rows of x, sorted by the expert that they go to, times that expert's weights."""
    block, j = tl.program_id(0), tl.program_id(1)
    own = tl.load(expert + block).to(tl.int64)
    row = tl.load(order + block * BM + tl.arange(0, BM))
    n, k = j * BN + tl.arange(0, BN), tl.arange(0, BK)
    left = x + row[:, None] * K + k[None, :]
    right = w + own * K * N + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(left), tl.load(right), acc)
        left += BK
        right += BK * N
    tl.store(out + row[:, None] * N + n[None, :], acc.to(out.dtype.element_ty))


@jit
def decode(q, k, v, out, n, scale, HEAD: tl.constexpr, GROUP: tl.constexpr, BN: tl.constexpr):
    """Attention of a group of 16 queries that share keys and values."""
    head = tl.program_id(0).to(tl.int64)
    g, d = tl.arange(0, GROUP), tl.arange(0, HEAD)
    query = tl.load(q + head * GROUP * HEAD + g[:, None] * HEAD + d[None, :])
    acc = tl.zeros((GROUP, HEAD), tl.float32)
    total = tl.zeros((GROUP,), tl.float32)
    top = tl.full((GROUP,), -1.0e30, tl.float32)
    for start in range(0, n, BN):
        j = start + tl.arange(0, BN)
        key = tl.load(k + head * n * HEAD + j[None, :] * HEAD + d[:, None])
        scores = tl.dot(query, key) * scale
        new = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        value = tl.load(v + head * n * HEAD + j[:, None] * HEAD + d[None, :])
        acc = tl.dot(p.to(value.dtype), value, acc * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        top = new
    place = head * GROUP * HEAD + g[:, None] * HEAD + d[None, :]
    tl.store(out + place, (acc / total[:, None]).to(out.dtype.element_ty))


@jit
def attention_backward(
    q, k, v, do, lse, delta, dk, dv, scale, n, HEAD: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """The gradients of one block of keys and values; scores are to the base 2."""
    head = tl.program_id(1).to(tl.int64)
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, HEAD)
    base = head * n * HEAD
    key = tl.load(k + base + j[:, None] * HEAD + d[None, :])
    value = tl.load(v + base + j[:, None] * HEAD + d[None, :])
    grad_k = tl.zeros((BN, HEAD), tl.float32)
    grad_v = tl.zeros((BN, HEAD), tl.float32)
    for start in range(0, n, BM):
        m = start + tl.arange(0, BM)
        query_t = tl.load(q + base + m[None, :] * HEAD + d[:, None])
        p = tl.exp2(tl.dot(key, query_t) * scale - tl.load(lse + head * n + m)[None, :])
        grad = tl.load(do + base + m[:, None] * HEAD + d[None, :])
        grad_v = tl.dot(p.to(grad.dtype), grad, grad_v)
        ds = p * (tl.dot(value, tl.trans(grad)) - tl.load(delta + head * n + m)[None, :])
        grad_k = tl.dot(ds.to(query_t.dtype), tl.trans(query_t), grad_k)
    tl.store(dk + base + j[:, None] * HEAD + d[None, :], grad_k.to(dk.dtype.element_ty))
    tl.store(dv + base + j[:, None] * HEAD + d[None, :], grad_v.to(dv.dtype.element_ty))


@jit
def layer_norm_backward(x, w, grad, out, columns, eps, BLOCK: tl.constexpr):
    """The gradient of x of each row."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row + i, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(mask, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + eps)
    hat = centred * scale
    wg = tl.load(w + i, mask=mask, other=0.0).to(tl.float32) * tl.load(grad + row + i, mask=mask, other=0.0).to(
        tl.float32
    )
    a = tl.sum(hat * wg, 0) / columns
    b = tl.sum(wg, 0) / columns
    tl.store(out + row + i, ((wg - (hat * a + b)) * scale).to(out.dtype.element_ty), mask=mask)


@jit
def softmax_backward(y, grad, out, columns, BLOCK: tl.constexpr):
    """Of each row."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    value, g = tl.load(y + row + i, mask=i < columns), tl.load(grad + row + i, mask=i < columns)
    tl.store(out + row + i, value * (g - tl.sum(value * g, 0)), mask=i < columns)


@jit
def swiglu(x, out, columns, BLOCK: tl.constexpr):
    """silu(a) * b for rows whose halves are a and b."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + row * 2 * columns + i, mask=i < columns).to(tl.float32)
    b = tl.load(x + row * 2 * columns + columns + i, mask=i < columns).to(tl.float32)
    tl.store(out + row * columns + i, (a * tl.sigmoid(a) * b).to(out.dtype.element_ty), mask=i < columns)


@jit
def add_rows(index, grad, out, columns, BLOCK: tl.constexpr):
    """out[index] += grad, atomically: the gradient of a table."""
    row = tl.program_id(0).to(tl.int64)
    to = tl.load(index + row).to(tl.int64)
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + to * columns + i, tl.load(grad + row * columns + i), sem="relaxed")


@jit
def linear_scan_step(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@jit
def linear_scan(a, b, out, columns, BLOCK: tl.constexpr):
    """h[i] = a[i] h[i - 1] + b[i] along each row."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(a + row + i), tl.load(b + row + i)), 0, linear_scan_step)
    tl.store(out + row + i, h)


@jit
def best(x, out, where, columns, BLOCK: tl.constexpr):
    """The greatest of each row, and where it is."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    value, place = tl.max(tl.load(x + row * columns + i, mask=i < columns, other=-1.0e30), 0, return_indices=True)
    tl.store(out + row, value)
    tl.store(where + row, place)


@jit
def convolution(
    x, w, out, H, W, C: tl.constexpr, F: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """3 by 3, channels last, with a border of zeros, as a product."""
    p = tl.program_id(0) * BM + tl.arange(0, BM)
    image, row, column = p // (H * W), p // W % H, p % W
    f, k = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for tap in range(9):
        r, c = row + tap // 3 - 1, column + tap % 3 - 1
        inside = (r >= 0) & (r < H) & (c >= 0) & (c < W)
        place = ((image * H + r) * W + c) * C
        for start in range(0, C, BK):
            a = tl.load(x + place[:, None] + (start + k)[None, :], mask=inside[:, None], other=0.0)
            b = tl.load(w + (tap * C + start + k)[:, None] * F + f[None, :])
            acc = tl.dot(a, b, acc)
    tl.store(out + p[:, None] * F + f[None, :], acc.to(out.dtype.element_ty))


@jit
def scaled_blocks(a, b, sa, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """a @ b^T in fp8 with a scale for every 128 of a row of a, and for every 128 by 128 of b."""
    columns = tl.cdiv(N, BN)
    i, j = tl.program_id(0) // columns, tl.program_id(0) % columns
    m, n, k = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    groups = K // BK
    for step in range(groups):
        x = tl.load(a + m[:, None] * K + (step * BK + k)[None, :])
        y = tl.load(b + n[None, :] * K + (step * BK + k)[:, None])
        left = tl.load(sa + m * groups + step)
        right = tl.load(sb + n // BK * groups + step)
        acc += tl.dot(x, y) * left[:, None] * right[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))


@jit
def geglu_tanh(x, out, columns, BLOCK: tl.constexpr):
    """gelu(a) * b, gelu by tanh, for rows whose halves are a and b."""
    row = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + row * 2 * columns + i, mask=i < columns).to(tl.float32)
    b = tl.load(x + row * 2 * columns + columns + i, mask=i < columns).to(tl.float32)
    bent = libdevice.tanh(0.7978845608028654 * (a + 0.044715 * a * a * a))
    tl.store(out + row * columns + i, (0.5 * a * (1.0 + bent) * b).to(out.dtype.element_ty), mask=i < columns)


@jit
def softplus(x, out, n, BLOCK: tl.constexpr):
    """log(1 + e^x)."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n).to(tl.float32)
    found = tl.where(value > 20.0, value, libdevice.log1p(tl.exp(value)))
    tl.store(out + i, found.to(out.dtype.element_ty), mask=i < n)


@jit
def rotate_in_place(q, cos, sin, heads, half, BLOCK: tl.constexpr):
    """Rotary embedding of a token's heads, pairs counted through; the number of pairs of a head is not a constant."""
    token = tl.program_id(0).to(tl.int64)
    pairs = heads * half
    for start in range(0, pairs, BLOCK):
        i = start + tl.arange(0, BLOCK)
        at = q + token * 2 * pairs + i // half * 2 * half + i % half
        x, y = tl.load(at, mask=i < pairs), tl.load(at + half, mask=i < pairs)
        c = tl.load(cos + token * half + i % half, mask=i < pairs)
        s = tl.load(sin + token * half + i % half, mask=i < pairs)
        tl.store(at, x * c - y * s, mask=i < pairs)
        tl.store(at + half, y * c + x * s, mask=i < pairs)


@jit
def picked_loss(x, target, weight, out, n, columns, ignored, BLOCK: tl.constexpr):
    """The sum of weight[target] * -x[row, target] over rows whose target is not ignored."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    which = tl.load(target + i, mask=i < n, other=0)
    wanted = (which != ignored) & (i < n)
    value = tl.load(x + i * columns + which, mask=wanted, other=0.0)
    tl.store(out + tl.program_id(0), -tl.sum(value * tl.load(weight + which, mask=wanted, other=0.0)))
