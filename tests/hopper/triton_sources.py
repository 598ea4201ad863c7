"""Triton kernels whose layout IR for cuda:90, as Triton makes it, stands in tests/data/hopper (see make_ttgir.py).

Only make_ttgir.py imports this file: it needs the real Triton.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from hopper.gluon_sources import Source

SOURCES: dict[str, Source] = {}


@triton.jit
def matmul_of_pointers(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Loads through pointers, pipelined by asynchronous copies where 16 divides the sizes; wgmma."""
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    x = a + i[:, None] * K + k[None, :]
    y = b + k[:, None] * N + j[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(x), tl.load(y), acc)
        x += BK
        y += BK * N
    tl.store(c + i[:, None] * N + j[None, :], acc)


@triton.jit
def matmul_of_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Loads and stores through descriptors of the host."""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(c.dtype))


@triton.jit
def matmul_of_made_descriptors(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Descriptors made by the kernel; each program does several tiles."""
    x = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    y = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    z = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    columns = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * columns, tl.num_programs(0)):
        m = tile // columns * BM
        n = tile % columns * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(x.load([m, k]), y.load([k, n]), acc)
        z.store([m, n], acc.to(tl.float16))


@triton.jit
def specialized_by_triton(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The loop's loads are moved to warps of their own."""
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=True):
        acc = tl.dot(a.load([m, k]), b.load([n, k]).T, acc)
    c.store([m, n], acc.to(c.dtype))


@triton.jit
def attention(q, k, v, o, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """Softmax of q @ k.T, times v: the second product's left operand is in registers."""
    i = tl.program_id(0) * BM
    x = q.load([i, 0])
    top = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for j in range(0, N, BN):
        s = tl.dot(x, k.load([j, 0]).T) * scale
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        factor = tl.exp2(top - new)
        total = total * factor + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v.load([j, 0]), acc * factor[:, None])
        top = new
    o.store([i, 0], (acc / total[:, None]).to(o.dtype))


@triton.jit
def reduced(x, sums, least, BM: tl.constexpr, BN: tl.constexpr):
    """Every program adds its tile to one tile, and takes minima."""
    tile = x.load([tl.program_id(0) * BM, 0])
    sums.atomic_add([0, 0], tile)
    least.atomic_min([0, 0], tile.to(tl.int32))


@triton.jit
def moved(x, y, B0: tl.constexpr, B1: tl.constexpr, B2: tl.constexpr):
    """Three dimensions, with a window that begins outside."""
    tile = x.load([tl.program_id(0) * B0, tl.program_id(1) * B1 - 3, tl.program_id(2) * B2])
    y.store([tl.program_id(0) * B0, tl.program_id(1) * B1, tl.program_id(2) * B2], tile + 1)


@triton.jit
def sums(x, rows, columns, M: tl.constexpr, N: tl.constexpr):
    """Two reductions of one tile: a cluster cannot keep both within its blocks."""
    value = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(rows + tl.arange(0, M), tl.sum(value, 1))
    tl.store(columns + tl.arange(0, N), tl.sum(value, 0))


def _source(name: str, kernel: Any, signature: dict[str, str], constants: dict[str, Any], **options: Any) -> None:
    SOURCES[name] = Source(kernel, signature, constants, options)


SIZES = {"BM": 64, "BN": 64, "BK": 64}
_source(
    "triton_matmul_of_pointers",
    matmul_of_pointers,
    {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"},
    SIZES,
    num_stages=3,
)
_source(
    "triton_matmul_copied_ahead",  # sizes that 16 divides: now copies are asynchronous
    matmul_of_pointers,
    {"a": "*fp16", "b": "*fp16", "c": "*fp32"},
    {**SIZES, "M": 128, "N": 64, "K": 256},
    num_stages=3,
)
LARGE = {"BM": 128, "BN": 128, "BK": 64}
for blocks in (2, 4):
    _source(
        f"triton_matmul_in_clusters_of_{blocks}",
        matmul_of_pointers,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32"},
        {**LARGE, "M": 256, "N": 128, "K": 256},
        num_stages=3,
        num_ctas=blocks,
    )
_source(
    "triton_descriptors_in_clusters",
    matmul_of_descriptors,
    dict.fromkeys("ab", "tensordesc<fp16[128,64]>") | {"c": "tensordesc<fp16[128,128]>", "K": "i32"},
    LARGE,
    num_stages=3,
    num_ctas=2,
)
_source(
    "triton_sums_in_clusters", sums, dict.fromkeys(("x", "rows", "columns"), "*fp32"), {"M": 64, "N": 128}, num_ctas=2
)
TILE = "tensordesc<fp16[64,64]>"
BF = "tensordesc<bf16[128,64]>"
_source(
    "triton_matmul_of_descriptors",
    matmul_of_descriptors,
    {"a": TILE, "b": TILE, "c": TILE, "K": "i32"},
    SIZES,
    num_stages=3,
)
_source(
    "triton_matmul_of_descriptors_bf16_w8",
    matmul_of_descriptors,
    {"a": BF, "b": BF, "c": "tensordesc<bf16[128,128]>", "K": "i32"},
    {"BM": 128, "BN": 128, "BK": 64},
    num_stages=4,
    num_warps=8,
)
FP8 = "tensordesc<fp8e4nv[64,128]>"
_source(
    "triton_matmul_of_descriptors_fp8",
    matmul_of_descriptors,
    {"a": FP8, "b": FP8, "c": "tensordesc<fp32[64,64]>", "K": "i32"},
    {"BM": 64, "BN": 64, "BK": 128},
    num_stages=3,
)
_source(
    "triton_matmul_of_made_descriptors",
    matmul_of_made_descriptors,
    {"a": "*fp16", "b": "*fp16", "c": "*fp16", "M": "i32", "N": "i32", "K": "i32"},
    SIZES,
    num_stages=3,
)
_source("triton_specialized", specialized_by_triton, {"a": TILE, "b": TILE, "c": TILE, "K": "i32"}, SIZES, num_stages=3)
_source(
    "triton_attention",
    attention,
    {"q": TILE, "k": TILE, "v": TILE, "o": TILE, "N": "i32", "scale": "fp32"},
    {"D": 64, "BM": 64, "BN": 64},
    num_stages=3,
)
_source(
    "triton_reduced",
    reduced,
    {"x": "tensordesc<fp32[16,32]>", "sums": "tensordesc<fp32[16,32]>", "least": "tensordesc<i32[16,32]>"},
    {"BM": 16, "BN": 32},
)
_source(
    "triton_moved",
    moved,
    {"x": "tensordesc<fp32[2,8,16]>", "y": "tensordesc<fp32[2,8,16]>"},
    {"B0": 2, "B1": 8, "B2": 16},
)
