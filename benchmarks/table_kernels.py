"""The kernels of the performance table, and how the table launches them.

Loaded once with Weft and, in a process of its own, once with Triton's interpreter under the name `weft` (see
interpreter.py), so this file uses nothing but what both have.
"""

from __future__ import annotations

import weft
import weft.language as tl


@weft.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y, out):
    n = out.shape[0]
    add_kernel[(weft.cdiv(n, 8192),)](x, y, out, n, BLOCK=8192)


@weft.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


def softmax(x, out):
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, BLOCK=weft.next_power_of_2(columns))


@weft.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + columns, mask=mask)
    bias = tl.load(bias_ptr + columns, mask=mask)
    tl.store(out_ptr + row * n_cols + columns, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm(x, weight, bias, out, mean, rstd):
    rows, columns = x.shape
    block = weft.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](x, weight, bias, out, mean, rstd, columns, 1e-5, BLOCK=block)


@weft.jit
def gelu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=mask)


def gelu(x, out):
    n = out.shape[0]
    gelu_kernel[(weft.cdiv(n, 8192),)](x, out, n, BLOCK=8192)


@weft.jit
def transpose_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (m[:, None] < M) & (n[None, :] < N)
    tile = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=mask)
    tl.store(out_ptr + n[:, None] * M + m[None, :], tile.T, mask=(n[:, None] < N) & (m[None, :] < M))


def transpose(x, out):
    M, N = x.shape
    block = min(256, M)
    transpose_kernel[(weft.cdiv(M, block), weft.cdiv(N, block))](x, out, M, N, BLOCK_M=block, BLOCK_N=block)


@weft.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * tiles_n
    first_m = pid // in_group * GROUP
    group_rows = min(tiles_m - first_m, GROUP)
    m = (first_m + pid % in_group % group_rows) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid % in_group // group_rows * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + m[:, None] * K + k[None, :]
    b_tile = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.int32 if c_ptr.dtype.element_ty == tl.int32 else tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_tile), tl.load(b_tile), acc, input_precision="ieee")
        a_tile += BLOCK_K
        b_tile += BLOCK_K * N
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))


def matmul(a, b, c, block=(128, 128, 128)):
    (M, K), N = a.shape, b.shape[1]
    grid = (weft.cdiv(M, block[0]) * weft.cdiv(N, block[1]),)
    matmul_kernel[grid](a, b, c, M, N, K, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], GROUP=4)


@weft.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, n_ctx, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    offset = tl.program_id(1).to(tl.int64) * n_ctx * HEAD
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.arange(0, BLOCK_N)
    d = tl.arange(0, HEAD)
    q = tl.load(q_ptr + offset + m[:, None] * HEAD + d[None, :])
    k_tile = k_ptr + offset + n[None, :] * HEAD + d[:, None]
    v_tile = v_ptr + offset + n[:, None] * HEAD + d[None, :]
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD], tl.float32)
    scale *= 1.4426950408889634
    for _ in range(0, n_ctx, BLOCK_N):
        scores = tl.dot(q, tl.load(k_tile), input_precision="ieee")
        new_top = tl.maximum(top, tl.max(scores, 1) * scale)
        p = tl.exp2(scores * scale - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(v_ptr.dtype.element_ty), tl.load(v_tile), acc * shrink[:, None], input_precision="ieee")
        top = new_top
        k_tile += BLOCK_N * HEAD
        v_tile += BLOCK_N * HEAD
    tl.store(out_ptr + offset + m[:, None] * HEAD + d[None, :], (acc / total[:, None]).to(out_ptr.dtype.element_ty))


def attention(q, k, v, out, block=(64, 64)):
    batch, heads, n_ctx, head = q.shape
    grid = (weft.cdiv(n_ctx, block[0]), batch * heads)
    scale = head**-0.5
    attention_kernel[grid](q, k, v, out, scale, n_ctx, HEAD=head, BLOCK_M=block[0], BLOCK_N=block[1])


@weft.jit
def small_kernel(a_ptr, b_ptr, c_ptr, d_ptr, n, scale, BLOCK: tl.constexpr):
    """One program, six arguments: what a call costs by itself."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(a_ptr + offsets, mask=mask) + tl.load(b_ptr + offsets, mask=mask)
    tl.store(d_ptr + offsets, x * scale + tl.load(c_ptr + offsets, mask=mask), mask=mask)
