"""Blocks of descriptors of more than two dimensions, as matrices: `d.load([z, i, j]).reshape(M, N)`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import aligned, integers
from .specialized import is_specialized, simulated, why_not

slow = pytest.mark.slow


@weft.jit
def batched(a, b, c, Z, M, N, K, past, MADE: tl.constexpr, B: tl.constexpr):  # type: ignore[no-untyped-def]
    """c[z] = a[z + past] b[z]; the matrices of b lie between each other's rows."""
    if MADE:
        ad = tl.make_tensor_descriptor(a, [Z, M, K], [M * K, K, 1], [1, B, B])
        bd = tl.make_tensor_descriptor(b, [K, Z, N], [Z * N, N, 1], [B, 1, B])
        cd = tl.make_tensor_descriptor(c, [Z, M, N], [M * N, N, 1], [1, B, B])
    else:
        ad, bd, cd = a, b, c
    z, m0, n0 = tl.program_id(0), tl.program_id(1) * B, tl.program_id(2) * B
    acc = tl.zeros((B, B), tl.float32)
    for at in tl.range(0, K, B, warp_specialize=True):
        acc = tl.dot(ad.load([z + past, m0, at]).reshape(B, B), bd.load([at, z, n0]).reshape(B, B), acc)
    cd.store([z, m0, n0], acc[None, :, :])


def run(made: bool, sizes: tuple[int, int, int, int] = (3, 72, 80, 104), past: int = 0) -> Any:
    z, m, n, k = sizes
    a, b, c = integers(1, (z, m, k), np.float16), integers(2, (k, z, n), np.float16), aligned((z, m, n), np.float32)
    blocks = ((1, 64, 64), (64, 1, 64), (1, 64, 64))
    given: Any = (a, b, c)
    if not made:
        given = [weft.TensorDescriptor.from_tensor(x, list(block)) for x, block in zip((a, b, c), blocks, strict=True)]
    grid = (z, -(-m // 64), -(-n // 64))
    kernel = simulated(batched, grid, *given, z, m, n, k, past, MADE=made, B=64, num_warps=4, num_stages=2)
    shifted = np.zeros((z, m, k))
    shifted[: max(0, z - past)] = a.astype(np.float64)[past:]
    np.testing.assert_array_equal(c, shifted @ b.astype(np.float64).transpose(1, 0, 2))
    return kernel


@pytest.mark.parametrize("made", [False, True])
def test_matrices_of_a_descriptor_are_copied(made: bool) -> None:
    kernel = run(made)
    assert is_specialized(kernel), why_not(kernel)


@slow
@pytest.mark.parametrize("made", [False, True])
@pytest.mark.parametrize("past", [1, 2, 3, 5])
def test_matrices_past_the_end_are_zero(made: bool, past: int) -> None:
    """There is no map from which all is left out: the launch is one of the kernel without maps then."""
    kernel = run(made, past=past)
    assert is_specialized(kernel) == (past < 3), why_not(kernel)


@weft.jit
def masked_as_a_whole(a, b, c, Z, M, K, N: tl.constexpr, B: tl.constexpr):  # type: ignore[no-untyped-def]
    """By pointers; a number that is compared is the mask's, not that of an index."""
    z = tl.program_id(0)
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for at in tl.range(0, K, B, warp_specialize=True):
        left = tl.load(a + z * M * K + i * K + at + j, (i < M) & (at + j < K) & (z < Z), 0.0)
        acc = tl.dot(left, tl.load(b + (at + i) * N + j, (at + i < K) & (j < N), 0.0), acc)
    tl.store(c + (z * B + i) * B + j, acc)


def test_a_matrix_is_left_out_by_its_number() -> None:
    z, m, k = 2, 40, 96
    a, b = integers(1, (z + 1, m, k), np.float16), integers(2, (k, 64), np.float16)
    c = aligned((z + 1, 64, 64), np.float32)
    kernel = simulated(masked_as_a_whole, (z + 1,), a, b, c, z, m, k, N=64, B=64, num_warps=4, num_stages=2)
    assert is_specialized(kernel), why_not(kernel)
    assert c[0].any() and not c[z].any()
    np.testing.assert_array_equal(c[:z, :m], a[:z].astype(np.float64) @ b.astype(np.float64))

