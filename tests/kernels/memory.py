"""Moving data: strided and transposed copies, atomics, gathers through pointers, aliasing within a program."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import Case, f64, integers, normal, zeros


@triton.jit
def transpose_copy(src_ptr, dst_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    tile = tl.load(src_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(dst_ptr + n[:, None] * M + m[None, :], tile.T, mask=(n[:, None] < N) & (m[None, :] < M))


@triton.jit
def atomic_histogram(x_ptr, bins_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bins = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(bins_ptr + bins, 1, mask=mask)


CASES = [
    Case(
        "transpose_copy", transpose_copy,
        lambda rng: {"src_ptr": normal(rng, 50, 70), "dst_ptr": zeros(70, 50), "M": 50, "N": 70},
        lambda a: {"dst_ptr": f64(a["src_ptr"]).T},
        grid=(4, 3), constexprs={"BLOCK_M": 16, "BLOCK_N": 32},
    ),
    Case(
        "atomic_histogram", atomic_histogram,
        lambda rng: {"x_ptr": integers(rng, 0, 10, 1000), "bins_ptr": zeros(10, dtype=np.int32), "n": 1000},
        lambda a: {"bins_ptr": np.bincount(a["x_ptr"], minlength=10)},
        grid=(8,), constexprs={"BLOCK": 128},
    ),
]
