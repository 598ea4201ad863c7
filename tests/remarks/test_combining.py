"""How elements are combined, and what becomes of loops and products on the way: the whole text."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl

from .telling import compiled, told


@weft.jit
def summed(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(x + at)
    tl.store(out + at, tl.cumsum(tile, AXIS))
    tl.store(out, tl.sum(tl.sum(tile, AXIS)))


def made(rows: int, columns: int, axis: int, target: str = "cuda:80", **options: Any) -> Any:
    constants = {"ROWS": rows, "COLUMNS": columns, "AXIS": axis}
    return compiled(summed, target, "*fp32 *fp32", constants, "x out", **options)


@pytest.mark.parametrize(
    "rows, columns, axis, scan, reduction",
    [  # 16 lanes have 4 elements of a row each: two rows for a warp, 8 for 4 warps
        (8, 64, 1, "4 elements in each thread, then 16 lanes by 5 shuffles",
         "4 elements in each thread, then 16 lanes by 4 shuffles"),
        (8, 64, 0, "4 elements in each thread, then 2 lanes by 1 shuffle",  # loaded along the other dimension
         "4 elements in each thread, then 2 lanes by 1 shuffle"),
        (512, 1, 0,
         "4 elements in each thread, then 32 lanes by 6 shuffles, then 4 warps through 16 bytes of shared memory",
         "4 elements in each thread, then 32 lanes by 5 shuffles, then 4 warps through 16 bytes of shared memory"),
        (128, 4, 1, "4 elements in each thread", "4 elements in each thread"),
    ],
)  # fmt: skip
def test_by_threads_lanes_and_warps(rows: int, columns: int, axis: int, scan: str, reduction: str) -> None:
    kernel = made(rows, columns, axis)
    tile = f"{rows}x{columns}xf32 along dimension {axis}"
    assert told(kernel, "scan") == [f"k.py:5:24: scan: {tile}: {scan}"]
    assert told(kernel, "reduction")[1] == f"k.py:6:26: reduction: {tile}: {reduction}"


def test_by_blocks_of_a_cluster() -> None:
    assert told(made(64, 64, 0, "cuda:90", num_ctas=2), "reduction")[0].endswith(
        ", then 2 blocks of the cluster that send each other their results"
    )


@weft.jit
def looped(x, out, n, FACTOR: tl.constexpr, KNOWN: tl.constexpr):
    i = tl.arange(0, 64)
    total = tl.zeros((64,), tl.float32)
    for first in tl.range(0, KNOWN if KNOWN else n, loop_unroll_factor=FACTOR):
        total += tl.load(x + first * 64 + i)
    tl.store(out + i, total)


@pytest.mark.parametrize("target", ["cuda:90", "cpu"])
@pytest.mark.parametrize(
    "known, text",
    [
        (0, "the loop: 4 iterations at a time, as loop_unroll_factor asks; those that are left one at a time"),
        (8, "the loop: 4 iterations at a time, as loop_unroll_factor asks"),
        (10, "the loop: 4 iterations at a time, as loop_unroll_factor asks; 2 one at a time"),
        (3, "not the loop: it has 3 iterations, fewer than 4"),
        (1, "the loop: it has one iteration, which stands in its place"),
    ],
)
def test_unrolled_loops(target: str, known: int, text: str) -> None:
    kernel = compiled(looped, target, "*fp32 *fp32 i32", {"FACTOR": 4, "KNOWN": known})
    assert told(kernel, "unrolled")[-1] == f"k.py:5:18: unrolled: {text}"


@weft.jit
def scaled(a, scale, out, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    left = tl.load(a + i * SIZE + j)
    scales = tl.load(scale + i * (SIZE // 32) + tl.arange(0, SIZE // 32)[None, :])
    total = tl.dot_scaled(left, scales, "e4m3", tl.trans(left), scales, "e4m3")
    tl.store(out + i * SIZE + j, total)


def test_products_with_scales() -> None:
    for target, widened in (("cuda:90", "bf16"), ("cpu", "f32")):
        kernel = compiled(scaled, target, "*fp8e4nv *u8 *fp32", {"SIZE": 64})
        assert told(kernel, "product split") == [
            f"k.py:6:13: product split: 64x64xf32: operands in e4m3 and e4m3 are widened, scaled, and multiplied as "
            f"{widened}: no scaled instruction is used"
        ]


@weft.jit
def broadcast_product(a, b, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    left, right = tl.load(a + at), tl.load(b + at)
    tl.store(out + at, tl.sum(left[:, :, None] * right[None, :, :], 1))


def test_a_sum_of_products() -> None:
    kernel = compiled(broadcast_product, "cuda:80", "*fp32 *fp32 *fp32", {"SIZE": 32})
    assert told(kernel, "sum as product") == [
        "k.py:5:24: sum as product: 32x32xf32: a product of matrices holds its sums alone, and not 32x32x32xf32 of "
        "products"
    ]
    assert len(told(kernel, "product")) == 1


@weft.jit
def by_descriptors(x, out, n, SIZE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n, SIZE], [SIZE, 1], [SIZE, SIZE])
    target = tl.make_tensor_descriptor(out, [n, SIZE], [SIZE, 1], [SIZE, SIZE])
    target.store([0, 0], source.load([0, 0]))


def test_descriptors_without_the_copy_engine() -> None:
    for target, count in (("cuda:90", 2), ("cuda:80", 0)):  # which has none
        lines = told(compiled(by_descriptors, target, "*fp32 *fp32 i32", {"SIZE": 32}), "instruction declined")
        assert len(lines) == count
        assert not lines or lines[0] == (
            "k.py:5:5: instruction declined: not a bulk copy: descriptors of the Triton language are accessed by each "
            "thread, at addresses and with masks"
        )


@weft.jit
def product(a, b, out, K, SIZE: tl.constexpr, DEPTH: tl.constexpr, USED: tl.constexpr):
    i, k = tl.arange(0, SIZE), tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for first in range(0, K, DEPTH):
        left = tl.load(a + i[:, None] * K + (k + first)[None, :])
        right = tl.load(b + (k + first)[:, None] * SIZE + i[None, :])
        total = tl.dot(left, right, total) * (0.5 if USED else 1.0)
    tl.store(out + i[:, None] * SIZE + i[None, :], total)


def test_products_that_go_on_into_the_next_iteration() -> None:
    constants, by_threads = {"SIZE": 64, "DEPTH": 64, "USED": False}, {"made_tensors": False, "num_stages": 4}
    kernel = compiled(product, "cuda:90", "*fp16 *fp16 *fp32 i32", constants, "a b out K", **by_threads)
    assert told(kernel, "product overlap") == [
        "k.py:5:18: product overlap: between iterations: the last product goes on until the first of the next "
        "iteration has begun"
    ]
    assert told(kernel, "fence") == [
        "k.py:6:16: fence: of the asynchronous proxy, between asynchronous copies on line 6 and a product of "
        "warp groups on line 8 (2 times)"
    ]
    assert kernel.asm["lane"].count("fence {kind=async}") == 2, "before the loop, and in it for the next iteration"
    kernel = compiled(product, "cuda:90", "*fp16 *fp16 *fp32 i32", {**constants, "USED": True}, "a b out K")
    assert told(kernel, "product overlap") == [
        "k.py:5:18: product overlap: between iterations: none, as the iteration uses the result, or the operands do "
        "not outlast it"
    ]
