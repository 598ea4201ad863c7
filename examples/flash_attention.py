"""Flash attention, forward: softmax(q k^T) v without ever storing the scores.

A program owns BLOCK_M queries and walks over keys and values in blocks. It keeps for every query the largest score so
far, the sum of exponentials, and the weighted sum of values. When a block brings a larger score, what was summed before
is scaled down by exp(old - new): the *online softmax*. Memory grows with the sequence length, not with its square.

Causal attention walks in two stages: blocks wholly before the diagonal need no mask, only those on it do. The scores
are kept in powers of two (log2 e is folded into the scale), because `exp2` is the cheaper function.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def walk(
    acc,
    total,
    top,
    q,
    k_ptr,
    v_ptr,
    m,
    first,
    last,
    n_ctx,
    HEAD: tl.constexpr,
    BLOCK_N: tl.constexpr,
    ON_DIAGONAL: tl.constexpr,
):
    """Take in the keys and values from `first` to `last`."""
    d = tl.arange(0, HEAD)
    for start in range(first, last, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + n[None, :] * HEAD + d[:, None], mask=n[None, :] < n_ctx, other=0.0)
        scores = tl.dot(q, k, input_precision="ieee")
        allowed = n[None, :] < n_ctx
        if ON_DIAGONAL:
            allowed = allowed & (m[:, None] >= n[None, :])
        scores = tl.where(allowed, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        v = tl.load(v_ptr + n[:, None] * HEAD + d[None, :], mask=n[:, None] < n_ctx, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        total = total * shrink + tl.sum(p, 1)
        top = new_top
    return acc, total, top


@weft.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    scale,
    n_ctx,
    HEAD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    first_m = tl.program_id(0) * BLOCK_M
    offset = tl.program_id(1).to(tl.int64) * n_ctx * HEAD
    m = first_m + tl.arange(0, BLOCK_M)
    d = tl.arange(0, HEAD)
    here = offset + m[:, None] * HEAD + d[None, :]
    q = tl.load(q_ptr + here, mask=m[:, None] < n_ctx, other=0.0)
    q = (q * (scale * 1.4426950408889634)).to(q_ptr.dtype.element_ty)
    k_ptr += offset
    v_ptr += offset
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD], tl.float32)
    if CAUSAL:
        acc, total, top = walk(acc, total, top, q, k_ptr, v_ptr, m, 0, first_m, n_ctx, HEAD, BLOCK_N, False)
        last = min(first_m + BLOCK_M, n_ctx)
        acc, total, top = walk(acc, total, top, q, k_ptr, v_ptr, m, first_m, last, n_ctx, HEAD, BLOCK_N, True)
    else:
        acc, total, top = walk(acc, total, top, q, k_ptr, v_ptr, m, 0, n_ctx, n_ctx, HEAD, BLOCK_N, False)
    tl.store(out_ptr + here, acc / total[:, None], mask=m[:, None] < n_ctx)


def attention(q: Array, k: Array, v: Array, out: Array, causal: bool) -> None:
    """out = softmax(q @ k.T / sqrt(head)) @ v for arrays (batch, heads, sequence, head)"""
    batch, heads, n_ctx, head = q.shape
    BLOCK_M, BLOCK_N = 64, 64
    attention_kernel[(weft.cdiv(n_ctx, BLOCK_M), batch * heads)](
        q, k, v, out, head**-0.5, n_ctx, HEAD=head, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, CAUSAL=causal
    )


def plain_attention(q: Array, k: Array, v: Array, causal: bool) -> Array:
    """The same in NumPy, with the whole score matrix."""
    scores = q @ k.swapaxes(-1, -2) * q.dtype.type(q.shape[-1] ** -0.5)
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    result: Array = p / p.sum(-1, keepdims=True) @ v
    return result


def works() -> Iterator[Work]:
    """Causal and not, head sizes 64 and 128."""
    for head, causal in ((64, False), (64, True), (128, False), (128, True)):
        batch, heads, n_ctx = 1, 8, 1024
        q, k, v = (normal(batch, heads, n_ctx, head, seed=seed) for seed in range(3))
        out = np.zeros_like(q)

        def torch_work(torch, q=q, k=k, v=v, causal=causal):
            tensors = [torch.from_numpy(array) for array in (q, k, v)]
            return lambda: torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)

        yield Work(
            f"{heads}x{n_ctx}x{head} fp32{' causal' if causal else ''}",
            lambda: attention(q, k, v, out, causal),
            lambda: out,
            lambda: plain_attention(*(array.astype(np.float64) for array in (q, k, v)), causal),
            numpy=lambda: plain_attention(q, k, v, causal),
            torch=torch_work,
            flops=4 * batch * heads * n_ctx**2 * head * (0.5 if causal else 1),
        )


if __name__ == "__main__":
    main(__file__, works)
