"""Operands of products whose contiguous dimension is narrow: what copies cannot bring ahead is loaded."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
import weft.language as tl
from weft.compiler import ASTSource, GPUTarget
from weft.compiler.options import make_options
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline


@weft.jit
def product(A, B, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for at in tl.range(0, K, BK, num_stages=3):
        left = tl.load(A + (at + k)[None, :] * M + m[:, None], mask=(at + k)[None, :] < K, other=0.0)
        right = tl.load(B + n[None, :] * K + (at + k)[:, None], mask=(at + k)[:, None] < K, other=0.0)
        total = tl.dot(left, right.to(left.dtype), total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("warps", [2, 4])
@pytest.mark.parametrize(("kind", "m"), [(ml_dtypes.float8_e5m2, 16), (ml_dtypes.float8_e5m2, 32), (np.float16, 16)])
@pytest.mark.thinned(3)
def test_columns_of_a_few_bytes(kind: type, m: int, warps: int, target: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (256, m)).astype(np.float32).astype(kind), np.ones((64, 256), np.float32).astype(kind)
    out = np.zeros((m, 64), np.float32)
    product[(1,)](a, b, out, 256, M=m, N=64, BK=64, target=target, num_warps=warps)
    np.testing.assert_array_equal(out, a.astype(np.float32).T @ b.astype(np.float32).T)


@weft.jit
def transposed_product(A, B, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((N, M), tl.float32)
    for at in tl.range(0, K, BK, num_stages=2):
        left = tl.load(A + m[:, None] * K + (at + k)[None, :], mask=(at + k)[None, :] < K, other=0.0)
        right = tl.load(B + (at + k)[:, None] * N + n[None, :], mask=(at + k)[:, None] < K, other=0.0)
        total = tl.dot(tl.trans(right), tl.trans(left), total)
    tl.store(OUT + n[:, None] * M + m[None, :], total)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize(
    ("kind", "m", "n", "depth"),
    [(np.float32, 4, 128, 16), (ml_dtypes.bfloat16, 4, 16, 32), (ml_dtypes.float8_e5m2, 64, 16, 64), (np.float16, 16, 64, 32)],  # noqa: E501
)  # fmt: skip
def test_transposed_tiles_that_are_too_small_for_a_swizzle(kind: type, m: int, n: int, depth: int, target: str) -> None:
    """A buffer without a swizzle has no transposed layout to be seen in."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, s).astype(np.float32).astype(kind) for s in ((m, 3 * depth), (3 * depth, n)))
    out = np.zeros((n, m), np.float32)
    transposed_product[(1,)](a, b, out, 3 * depth, M=m, N=n, BK=depth, target=target)
    np.testing.assert_array_equal(out, (a.astype(np.float32) @ b.astype(np.float32)).T)


@weft.jit
def scaled_product(A, B, S, OUT, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    """The right operand is made of halves that repeat, by rows of scales of 2 bytes each."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, K, BK):
        left = tl.load(A + m[:, None] * K + (at + k)[None, :])
        half = tl.load(B + (at + k)[:, None] * (N // 2) + tl.arange(0, N // 2)[None, :])
        scale = tl.load(S + (at // BK) * N + n[None, :])
        right = tl.interleave(half, half).to(tl.float16) * scale
        total = tl.dot(left, right, total)
    tl.store(OUT + m[:, None] * N + n[None, :], total)


def laid_out() -> ModuleOp:
    constants = {"M": 32, "N": 32, "BK": 32}
    signature = {"A": "*fp16", "B": "*i32", "S": "*fp16", "OUT": "*fp32", "K": "i32"}
    signature |= dict.fromkeys(constants, "constexpr")
    divisible: dict[tuple[int, ...], list[list[Any]]] = {(i,): [["tt.divisibility", 16]] for i in range(5)}
    source = ASTSource(scaled_product, signature, constants, divisible)
    tiles = source.make_ir(make_options({"num_warps": 4}).language, GPUTarget("cuda", 90, 32))
    return gpu_pipeline(tile_pipeline(tiles), machine_of("cuda:90"), 4, 3)


def test_rows_of_single_elements_of_two_bytes_are_copied_too() -> None:
    """Each thread has one of the row's elements when it is spread; a copy takes 4 bytes."""
    rng = np.random.default_rng(0)
    a, s = rng.integers(-4, 5, (32, 96)).astype(np.float16), rng.integers(1, 5, (3, 32)).astype(np.float16)
    b, out = rng.integers(-4, 5, (96, 16)).astype(np.int32), np.zeros((32, 32), np.float32)
    module = laid_out()
    names = [op.name for op in module.walk()]
    assert "scf.for" in names and "tt.load" not in names
    assert names.count("ttg.async_copy_global_to_local") == 9  # three tiles, two iterations ahead and in the loop
    scaled_product[(1,)](a, b, s, out, 96, M=32, N=32, BK=32, target="sim:cuda:90")
    right = np.repeat(b, 2, 1) * np.repeat(s.astype(np.float32), 32, 0)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ right)
