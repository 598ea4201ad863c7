"""Kernels of the Triton language launched with `num_ctas`, each with its answer; for the simulator and the GPU.

A check takes `run(kernel, grid, *arguments, **options)`, which launches and leaves the results in the NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft
import weft.language as tl
from weft.ir import parse_module
from weft.lower import lower
from weft.machines import machine_of
from weft.passes import tile_pipeline
from weft.passes.gpu_pipelines import gpu_pipeline

from .simulated import CASES, FILES, Simulated

Run = Callable[..., None]
CHECKS: dict[str, Callable[[Run], None]] = {}
SIZES = (2, 4, 8)


def check(function: Callable[[Run, int], None]) -> Callable[[Run, int], None]:
    """A check for clusters of each size."""
    for blocks in SIZES:
        CHECKS[f"{function.__name__}-{blocks}"] = lambda run, blocks=blocks: function(run, blocks)
    return function


def in_clusters(name: str, blocks: int) -> Simulated:
    """A test kernel, from its tile IR, whose programs are clusters of so many blocks."""
    path = FILES[name]
    module = tile_pipeline(parse_module(path.read_text(encoding="utf-8"), path.name))
    return Simulated(CASES[path.stem], lower(gpu_pipeline(module, machine_of("cuda:90"), blocks=blocks)))


def whole(seed: int, *shape: int, dtype: Any = np.float32) -> Any:
    """Small whole numbers: sums and products of them are exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@weft.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@check
def add(run: Run, blocks: int) -> None:
    x, y = whole(0, 5000), whole(1, 5000)
    out = np.zeros_like(x)
    run(add_kernel, (5,), x, y, out, 5000, BLOCK=1024, num_ctas=blocks)
    np.testing.assert_array_equal(out, x + y)


@weft.jit
def softmax_kernel(x, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * stride + at, e / tl.sum(e, 0), mask=at < n)


@check
def softmax(run: Run, blocks: int) -> None:
    """Each row is divided among the blocks: its maximum and its sum are of all of them."""
    x = np.random.default_rng(0).standard_normal((3, 4000)).astype(np.float32)
    out = np.zeros_like(x)
    run(softmax_kernel, (3,), x, out, 4000, 4000, BLOCK=4096, num_ctas=blocks)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=2e-5)


@weft.jit
def sums_kernel(x, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    value = tl.load(x + i * N + j)
    tl.store(rows + tl.arange(0, M), tl.sum(value, 1))
    tl.store(columns + tl.arange(0, N), tl.sum(value, 0))


@check
def sums(run: Run, blocks: int) -> None:
    x = whole(0, 64, 128)
    rows, columns = np.zeros(64, np.float32), np.zeros(128, np.float32)
    run(sums_kernel, (1,), x, rows, columns, M=64, N=128, num_ctas=blocks)
    np.testing.assert_array_equal(rows, x.sum(1))
    np.testing.assert_array_equal(columns, x.sum(0))


@weft.jit
def transpose_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    k = tl.arange(0, M)[None, :]
    tl.store(out + tl.arange(0, N)[:, None] * M + k, tl.trans(tl.load(x + i * N + j)))


@check
def transpose(run: Run, blocks: int) -> None:
    x = whole(0, 64, 128, dtype=np.float16)
    out = np.zeros((128, 64), np.float16)
    run(transpose_kernel, (1,), x, out, M=64, N=128, num_ctas=blocks)
    np.testing.assert_array_equal(out, x.T)


@weft.jit
def product_kernel(
    a, b, c, K, sa, sb, sc, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr = "tf32"
):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(a + i * sa + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * sb + j)
        total = tl.dot(x, y, total, input_precision=PRECISION)
    tl.store(c + i * sc + j, total.to(c.dtype.element_ty))


def _product(run: Run, blocks: int, dtype: Any, m: int, n: int, k: int, precision: str = "tf32") -> None:
    a, b = whole(0, 2 * m, 192, dtype=dtype), whole(1, 192, 2 * n, dtype=dtype)
    c = np.zeros((2 * m, 2 * n), np.float32)
    sizes = {"M": m, "N": n, "BLOCK_K": k, "PRECISION": precision}
    run(product_kernel, (2, 2), a, b, c, 192, 192, 2 * n, 2 * n, **sizes, num_ctas=blocks)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@check
def product(run: Run, blocks: int) -> None:
    """By wgmma: blocks share rows of the left operand, columns of the right one."""
    _product(run, blocks, np.float16, 128, 128, 64)


@check
def wide_product(run: Run, blocks: int) -> None:
    _product(run, blocks, np.float16, 64, 256, 32)


@check
def small_product(run: Run, blocks: int) -> None:
    """By mma.sync, where a block has too few rows for wgmma; blocks that are too many hold copies."""
    _product(run, blocks, np.float16, 16, 32, 32)


@check
def product_without_matrices(run: Run, blocks: int) -> None:
    """By multiply-and-add."""
    _product(run, blocks, np.float32, 32, 32, 16, "ieee")


@weft.jit
def attention_kernel(q, k, v, out, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    i = tl.arange(0, M)
    d = tl.arange(0, D)
    rows = tl.program_id(0) * M + i
    queries = tl.load(q + rows[:, None] * D + d[None, :])
    top = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        j = start + tl.arange(0, N)
        keys = tl.load(k + j[None, :] * D + d[:, None])
        scores = tl.dot(queries, keys) * scale
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        kept = tl.exp(top - higher)
        total = total * kept + tl.sum(p, 1)
        values = tl.load(v + j[:, None] * D + d[None, :])
        result = tl.dot(p.to(tl.float16), values, result * kept[:, None])
        top = higher
    tl.store(out + rows[:, None] * D + d[None, :], result / total[:, None])


@check
def attention(run: Run, blocks: int) -> None:
    """Products of products, with reductions of rows between them."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((256, 64)).astype(np.float16) for _ in range(3))
    out = np.zeros((256, 64), np.float32)
    run(attention_kernel, (2,), q, k, v, out, 256, 0.125, M=128, N=64, D=64, num_ctas=blocks)
    scores = q.astype(np.float32) @ k.astype(np.float32).T * 0.125
    e = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True) @ v.astype(np.float32), atol=4e-3)


@weft.jit
def tickets_kernel(ticket, bins, x, order, N: tl.constexpr, BINS: tl.constexpr):
    mine = tl.atomic_add(ticket, 1)
    at = tl.arange(0, N)
    tl.store(order + mine * N + at, at * 0 + mine)
    tl.atomic_add(bins + tl.load(x + tl.program_id(0) * N + at), 1)
    counted = tl.histogram(tl.load(x + tl.program_id(0) * N + at), BINS)
    tl.atomic_add(bins + BINS + tl.arange(0, BINS), counted)


@check
def tickets(run: Run, blocks: int) -> None:
    """A program draws one ticket, whatever its blocks are, and each element is counted once."""
    x = np.random.default_rng(0).integers(0, 32, (6, 512)).astype(np.int32)
    ticket, bins, order = np.zeros(1, np.int32), np.zeros((2, 32), np.int32), np.zeros((6, 512), np.int32)
    run(tickets_kernel, (6,), ticket, bins, x, order, N=512, BINS=32, num_ctas=blocks)
    assert ticket[0] == 6
    np.testing.assert_array_equal(order, np.arange(6)[:, None] + np.zeros((1, 512), int))
    np.testing.assert_array_equal(bins, np.bincount(x.ravel(), minlength=32)[None, :] + np.zeros((2, 1), int))


@weft.jit
def scans_kernel(x, down, across, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    value = tl.load(x + i * N + j)
    tl.store(down + i * N + j, tl.cumsum(value, 0))
    tl.store(across + i * N + j, tl.cumsum(value, 1, reverse=True))


@check
def scans(run: Run, blocks: int) -> None:
    x = whole(0, 64, 32)
    down, across = np.zeros_like(x), np.zeros_like(x)
    run(scans_kernel, (1,), x, down, across, M=64, N=32, num_ctas=blocks)
    np.testing.assert_array_equal(down, np.cumsum(x, 0))
    np.testing.assert_array_equal(across, np.cumsum(x[:, ::-1], 1)[:, ::-1])


@weft.jit
def sorted_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.sort(tl.load(x + i * N + j), 1))


@check
def sort(run: Run, blocks: int) -> None:
    x = whole(0, 4, 256)
    out = np.zeros_like(x)
    run(sorted_kernel, (1,), x, out, M=4, N=256, num_ctas=blocks)
    np.testing.assert_array_equal(out, np.sort(x, 1))
