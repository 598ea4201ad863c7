"""Kernels of rows of any length, one program a row, for both sides."""

from sides import jit, tl


@jit
def scale(x, w, out, columns, BLOCK: tl.constexpr):
    """Each row times a vector."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < columns
    value = tl.load(x + row * columns + i, mask=mask) * tl.load(w + i, mask=mask)
    tl.store(out + row * columns + i, value, mask=mask)


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
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """Of each row."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row + i, (e / tl.sum(e, axis=0)).to(out.dtype.element_ty), mask=i < columns)


@jit
def transpose(x, out, m, n, BLOCK: tl.constexpr):
    """out = x.T, tile by tile, of any size."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * n + j[None, :], mask=(i < m)[:, None] & (j < n)[None, :])
    tl.store(out + j[:, None] * m + i[None, :], tl.trans(tile), mask=(j < n)[:, None] & (i < m)[None, :])
