"""Batched matrix multiplication: a grid of three dimensions.

The grid (tiles of M, tiles of N, batch) gives every program its matrix and its tile. The batch offset is computed in 64
bits: `batch * M * K` may pass 2^31 in real use, and 32-bit arithmetic would wrap without a word.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * M * K
    b_ptr += batch * K * N
    c_ptr += batch * M * N
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    tl.store(c_ptr + m * N + n, acc, mask=(m < M) & (n < N))


def batched_matmul(a: Array, b: Array, c: Array) -> None:
    """c[i] = a[i] @ b[i]"""
    (batch, M, K), N = a.shape, b.shape[2]
    BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 64
    grid = (weft.cdiv(M, BLOCK_M), weft.cdiv(N, BLOCK_N), batch)
    batched_matmul_kernel[grid](a, b, c, M, N, K, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)


def works() -> Iterator[Work]:
    """Many small products, the shape of attention by hand."""
    batch, m, n, k = 32, 256, 256, 64
    a, b, c = normal(batch, m, k), normal(batch, k, n, seed=1), np.zeros((batch, m, n), np.float32)

    def torch_work(torch):
        x, y, z = torch.from_numpy(a), torch.from_numpy(b), torch.empty(c.shape)
        return lambda: torch.bmm(x, y, out=z)

    yield Work(
        f"{batch} x {m}x{n}x{k} fp32",
        lambda: batched_matmul(a, b, c),
        lambda: c,
        lambda: a.astype(np.float64) @ b.astype(np.float64),
        tolerance=1e-4,
        numpy=lambda: np.matmul(a, b, out=c),
        torch=torch_work,
        flops=2 * batch * m * n * k,
    )


if __name__ == "__main__":
    main(__file__, works)
