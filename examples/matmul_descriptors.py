"""The same product through tensor descriptors, in a persistent kernel.

A descriptor is made on the host (`TensorDescriptor.from_tensor`) and knows shape, strides and the block it moves;
inside, `desc.load([row, column])` and `desc.store([row, column], tile)` handle the edges. On recent GPUs the hardware
does the copying; on a CPU it is simply the shortest way to say it.

The kernel is *persistent*: as many programs as workers are started, and each takes every n-th tile.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def matmul_kernel(a_desc, b_desc, c_desc, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
        m = tile // tiles_n * BLOCK_M
        n = tile % tiles_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            acc = tl.dot(a_desc.load([m, k]), b_desc.load([n, k]).T, acc, input_precision="ieee")
        c_desc.store([m, n], acc.to(c_desc.dtype))


def matmul(a: Array, b: Array, c: Array) -> None:
    """c = a @ b.T"""
    (M, K), N = a.shape, b.shape[0]
    BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 64
    a_desc = weft.TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K])
    b_desc = weft.TensorDescriptor.from_tensor(b, [BLOCK_N, BLOCK_K])
    c_desc = weft.TensorDescriptor.from_tensor(c, [BLOCK_M, BLOCK_N])
    matmul_kernel[(64,)](a_desc, b_desc, c_desc, M, N, K, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)


def works() -> Iterator[Work]:
    """fp16 and fp32."""
    m, n, k = 520, 480, 512
    for dtype, tolerance in ((np.dtype(np.float32), 1e-4), (np.dtype(np.float16), 2e-2)):
        a, b, c = normal(m, k, dtype=dtype), normal(n, k, dtype=dtype, seed=1), np.zeros((m, n), dtype)

        def torch_work(torch, a=a, b=b, c=c):
            x, y = torch.from_numpy(a), torch.from_numpy(b)
            out = torch.empty(c.shape, dtype=x.dtype)
            return lambda: torch.mm(x, y.T, out=out)

        yield Work(
            f"{m}x{n}x{k} {dtype.name}",
            lambda: matmul(a, b, c),
            lambda: c,
            lambda: a.astype(np.float64) @ b.astype(np.float64).T,
            tolerance=tolerance,
            numpy=(lambda: np.matmul(a, b.T, out=c)) if dtype == np.float32 else None,
            torch=torch_work,
            flops=2 * m * n * k,
        )


if __name__ == "__main__":
    main(__file__, works)
