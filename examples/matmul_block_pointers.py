"""The same product through block pointers: the compiler does the offsets and the edges.

`tl.make_block_ptr` describes a matrix (shape, strides) and a window in it (offsets, block shape). `tl.advance` moves
the window; a load with `boundary_check` fills what hangs over the edge, a store drops it. No index tiles, no masks.

Here A is stored transposed, to show that only the strides change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import Array, Work, main, normal


@weft.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    a_block = tl.make_block_ptr(a_ptr, (M, K), (stride_am, stride_ak), (m, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (stride_bk, stride_bn), (0, n), (BLOCK_K, BLOCK_N), (1, 0))
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_block = tl.advance(a_block, (0, BLOCK_K))
        b_block = tl.advance(b_block, (BLOCK_K, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (m, n), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c_block, acc, boundary_check=(0, 1))


def matmul(a: Array, b: Array, c: Array) -> None:
    """c = a @ b; `a` and `b` may be transposed views."""
    (M, K), N = a.shape, b.shape[1]
    strides = [stride // array.itemsize for array in (a, b) for stride in array.strides]
    BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 64
    grid = (weft.cdiv(M, BLOCK_M), weft.cdiv(N, BLOCK_N))
    matmul_kernel[grid](a, b, c, M, N, K, *strides, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)


def works() -> Iterator[Work]:
    """A is the transpose of a stored matrix; no tile divides the shape."""
    m, n, k = 750, 600, 500
    a, b, c = normal(k, m).T, normal(k, n, seed=1), np.zeros((m, n), np.float32)

    def torch_work(torch):
        x, y, z = torch.from_numpy(a), torch.from_numpy(b), torch.empty(c.shape)
        return lambda: torch.mm(x, y, out=z)

    yield Work(
        f"{m}x{n}x{k} fp32, A transposed",
        lambda: matmul(a, b, c),
        lambda: c,
        lambda: a.astype(np.float64) @ b.astype(np.float64),
        tolerance=1e-4,
        numpy=lambda: np.matmul(a, b, out=c),
        torch=torch_work,
        flops=2 * m * n * k,
    )


if __name__ == "__main__":
    main(__file__, works)
