"""Products of 8 bits in a loop, whichever way their operands lie in memory.

wgmma reads 8 bits along K only. A left operand that lies the other way is transposed on its way to shared memory; for a
right one that would take longer than the product, so mma.sync takes it as it lies.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

F8 = {"fp8e5": ml_dtypes.float8_e5m2, "fp8e4nv": ml_dtypes.float8_e4m3fn, "i8": np.int8}


@weft.jit
def matmul(
    c, a, b, k_size, sam, sak, sbk, sbn, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr,
    LIMIT: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), OUT)
    for start in range(0, k_size, K):
        x = tl.load(a + m[:, None] * sam + (start + k)[None, :] * sak)
        y = tl.load(b + (start + k)[:, None] * sbk + n[None, :] * sbn)
        acc = tl.dot(x, y, acc, out_dtype=OUT, max_num_imprecise_acc=LIMIT)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("kind", ["fp8e5", "fp8e4nv", "i8"])
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("left_rows", [True, False])
@pytest.mark.thinned(3)
def test_both_ways(kind: str, rows: bool, left_rows: bool) -> None:
    rng = np.random.default_rng(3)
    m, n, depth = 64, 64, 64
    a = rng.integers(-8, 8, (m, 2 * depth)).astype(F8[kind])
    b = rng.integers(-8, 8, (2 * depth, n)).astype(F8[kind])
    left = np.ascontiguousarray(a if left_rows else a.T)
    right = np.ascontiguousarray(b if rows else b.T)
    strides = [*((2 * depth, 1) if left_rows else (1, m)), *((n, 1) if rows else (1, 2 * depth))]
    out, dtype = (tl.int32, np.int32) if kind == "i8" else (tl.float32, np.float32)
    c = np.empty((m, n), dtype)
    with weft.target("sim:cuda:90"):
        matmul[(1,)](c, left, right, 2 * depth, *strides, m, n, depth, out, None)
        counts = weft.sim.last_run().kinds
    assert (c == a.astype(np.float64) @ b.astype(np.float64)).all()
    assert any(name.startswith("wgmma.m") for name in counts) != rows, counts


@pytest.mark.parametrize(("limit", "added"), [(None, 0), (32, 128), (64, 64)])
def test_sums_of_so_many_products_at_most_are_imprecise(limit: Any, added: int) -> None:
    """With a limit of all of K too: the next iteration's products are added to the sum in full precision."""
    byte, single = weft.MockTensor("fp8e5"), weft.MockTensor("fp32")
    strides = (256, 1, 1, 256)
    kernel = matmul.warmup(
        single, byte, byte, 256, *strides, 64, 128, 64, tl.float32, limit, grid=(1,), target="cuda:90", num_warps=4
    )
    assert kernel.asm["ptx"].count("add.f32") == added
