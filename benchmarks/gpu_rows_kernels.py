"""Softmax, norms and cross entropy of rows, for `gpu_rows.py`: `sides` gives jit and tl of either compiler.

Each has two forms. A `tile` is the whole row in one block of the next power of two. A `loop` goes along the row in
blocks: softmax and cross entropy keep a running maximum ("online"), norms a running sum, and all but cross entropy read
the row a second time.
"""

# mypy: ignore-errors
from sides import jit, tl


@jit
def softmax_tile(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    """Of each row."""
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    value = tl.load(x + at + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + at + i, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=i < n)


@jit
def softmax_loop(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    """Of each row, with the maximum and the sum of what has been read."""
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    most = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=-float("inf")).to(tl.float32)
        now = tl.maximum(most, tl.max(value, 0))
        total = total * tl.exp(most - now) + tl.sum(tl.exp(value - now), 0)
        most = now
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=-float("inf")).to(tl.float32)
        tl.store(out + at + start + i, (tl.exp(value - most) / total).to(out.dtype.element_ty), mask=start + i < n)


@jit
def rms_norm_tile(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    """Of each row, with weights."""
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    value = tl.load(x + at + i, mask=i < n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    weight = tl.load(w + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + at + i, (value * scale * weight).to(out.dtype.element_ty), mask=i < n)


@jit
def rms_norm_loop(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    """Of each row, with weights, in two passes."""
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        squares += value * value
    scale = tl.rsqrt(tl.sum(squares, 0) / n + eps)
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        weight = tl.load(w + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        tl.store(out + at + start + i, (value * scale * weight).to(out.dtype.element_ty), mask=start + i < n)


@jit
def layer_norm_tile(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    """Of each row, with weights and a bias."""
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    value = tl.load(x + at + i, mask=i < n, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / n
    apart = tl.where(i < n, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / n + eps)
    weight = tl.load(w + i, mask=i < n, other=0.0).to(tl.float32)
    bias = tl.load(b + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + at + i, (apart * scale * weight + bias).to(out.dtype.element_ty), mask=i < n)


@jit
def layer_norm_loop(x, w, b, out, n, eps, BLOCK: tl.constexpr):
    """Of each row, with weights and a bias, in two passes: the first sums values and squares."""
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        sums += value
        squares += value * value
    mean = tl.sum(sums, 0) / n
    scale = tl.rsqrt(tl.sum(squares, 0) / n - mean * mean + eps)
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        weight = tl.load(w + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        bias = tl.load(b + start + i, mask=start + i < n, other=0.0).to(tl.float32)
        result = (value - mean) * scale * weight + bias
        tl.store(out + at + start + i, result.to(out.dtype.element_ty), mask=start + i < n)


@jit
def cross_entropy_tile(x, labels, b, out, n, eps, BLOCK: tl.constexpr):
    """The loss of each row, whose right class `labels` tells."""
    row = tl.program_id(0)
    at = row.to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    value = tl.load(x + at + i, mask=i < n, other=-float("inf")).to(tl.float32)
    most = tl.max(value, 0)
    total = tl.sum(tl.exp(value - most), 0)
    right = tl.load(x + at + tl.load(labels + row)).to(tl.float32)
    tl.store(out + row, most + tl.log(total) - right)


@jit
def cross_entropy_loop(x, labels, b, out, n, eps, BLOCK: tl.constexpr):
    """The loss of each row, whose right class `labels` tells, in one pass."""
    row = tl.program_id(0)
    at = row.to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    most = -float("inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        value = tl.load(x + at + start + i, mask=start + i < n, other=-float("inf")).to(tl.float32)
        now = tl.maximum(most, tl.max(value, 0))
        total = total * tl.exp(most - now) + tl.sum(tl.exp(value - now), 0)
        most = now
    right = tl.load(x + at + tl.load(labels + row)).to(tl.float32)
    tl.store(out + row, most + tl.log(total) - right)
