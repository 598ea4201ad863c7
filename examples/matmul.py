"""Matrix multiplication with grouped ordering and a fused activation, in fp32, fp16, bf16 and int8.

Each program computes one BLOCK_M x BLOCK_N tile of C and walks along K, adding the product of two tiles at every step:
`tl.dot(a, b, acc)`. 16-bit inputs are multiplied as they are and summed in float32, int8 in int32.

Which tile a program takes matters: neighbours in time should share data that is still in the cache. Plain row order
reads all of B for every row of tiles; in *groups* of GROUP rows the programs sweep columns within the group, so that a
strip of A and one of B are used GROUP times while they are near.

The activation is applied to the tile before it leaves: a constexpr chooses it, so the other branch is never compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import weft
import weft.language as tl
from common import BF16, Array, Work, main, normal, to_torch


@weft.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


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
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    ACTIVATION: tl.constexpr,
    ACC: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    in_group = GROUP * tiles_n
    first_m = pid // in_group * GROUP
    group_rows = min(tiles_m - first_m, GROUP)
    pid_m = first_m + pid % in_group % group_rows
    pid_n = pid % in_group // group_rows

    # Rows and columns beyond the edge wrap around: they are computed and thrown away, which spares two masks.
    m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_tile = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_tile = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for step in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_tile, mask=k[None, :] < K - step * BLOCK_K, other=0)
        b = tl.load(b_tile, mask=k[:, None] < K - step * BLOCK_K, other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee", out_dtype=ACC)
        a_tile += BLOCK_K * stride_ak
        b_tile += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc)

    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_tile = c_ptr + m[:, None] * stride_cm + n[None, :] * stride_cn
    tl.store(c_tile, acc.to(c_ptr.dtype.element_ty), mask=(m[:, None] < M) & (n[None, :] < N))


def matmul(a: Array, b: Array, c: Array, activation: str = "") -> None:
    """c = activation(a @ b); any strides, so transposed views need no copy."""
    (M, K), N = a.shape, b.shape[1]
    strides = [stride // array.itemsize for array in (a, b, c) for stride in array.strides]
    BLOCK_M, BLOCK_N, BLOCK_K = 64, 64, 64
    matmul_kernel[(weft.cdiv(M, BLOCK_M) * weft.cdiv(N, BLOCK_N),)](
        a,
        b,
        c,
        M,
        N,
        K,
        *strides,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BLOCK_K=BLOCK_K,
        GROUP=8,
        ACTIVATION=activation,
        ACC=tl.int32 if a.dtype == np.int8 else tl.float32,
    )


def expected(a: Array, b: Array, activation: str) -> Array:
    """The same in float64."""
    c = a.astype(np.float64) @ b.astype(np.float64)
    return np.where(c >= 0, c, 0.01 * c) if activation else c


def torch_matmul(torch: Any, a: Array, b: Array, activation: str) -> Any:
    """PyTorch's product into an array allocated beforehand, then the activation."""
    x, y = to_torch(torch, a), to_torch(torch, b)
    if a.dtype == np.int8:
        return lambda: torch._int_mm(x, y)
    out = torch.empty((x.shape[0], y.shape[1]), dtype=x.dtype)
    if activation:
        return lambda: torch.nn.functional.leaky_relu_(torch.mm(x, y, out=out), 0.01)
    return lambda: torch.mm(x, y, out=out)


def works() -> Iterator[Work]:
    """Each type, and one shape that no tile divides."""
    cases = [
        (1024, 1024, 1024, np.dtype(np.float32), "", 1e-4),
        (500, 700, 300, np.dtype(np.float32), "leaky_relu", 1e-4),
        (1024, 1024, 1024, np.dtype(np.float16), "", 2e-2),
        (1024, 1024, 1024, BF16, "leaky_relu", 2e-1),
        (1024, 1024, 1024, np.dtype(np.int8), "", 0.0),
    ]
    for m, n, k, dtype, activation, tolerance in cases:
        if dtype == np.int8:
            rng = np.random.default_rng(0)
            a, b = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-128, 128, (k, n), np.int8)
            c = np.zeros((m, n), np.int32)
        else:
            a, b, c = normal(m, k, dtype=dtype), normal(k, n, dtype=dtype, seed=1), np.zeros((m, n), dtype)
        yield Work(
            f"{m}x{n}x{k} {dtype.name}{' leaky_relu' if activation else ''}",
            lambda: matmul(a, b, c, activation),
            lambda: c,
            lambda: expected(a, b, activation),
            tolerance=tolerance,
            numpy=(lambda: np.matmul(a, b, out=c)) if dtype == np.float32 else None,
            torch=lambda torch, a=a, b=b, activation=activation: torch_matmul(torch, a, b, activation),
            flops=2 * m * n * k,
        )


if __name__ == "__main__":
    main(__file__, works)
