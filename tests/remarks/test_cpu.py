"""What is fused into which loops on the CPU, along what these are vectorised, and what is kept: the whole text."""

from __future__ import annotations

from typing import Any

import pytest

import weft
import weft.language as tl

from .telling import compiled, told


def made(kernel: Any, types: str, **constants: Any) -> Any:
    return compiled(kernel, "cpu", types, constants, cpu="haswell", features="+avx2,+fma,+f16c", vector_bits=256)


@weft.jit
def softmax(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i * stride)
    row = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, row / tl.sum(row, 0))


def test_nests_and_what_is_kept_between_them() -> None:
    kernel = made(softmax, "*fp32 *fp32 i32", BLOCK=1024)
    lanes = "over 1024: 8 lanes of 32 bits along dimension 0"
    assert told(kernel, "loop nest") == [
        f"k.py:5:24: loop nest: {lanes}, 4 vectors at a time, 32 iterations, for tt.reduce on line 5, "
        "the tile of tt.load on line 4, 2 operations fused",
        f"k.py:6:5: loop nest: {lanes}, 4 vectors at a time, 32 iterations, for tt.store on line 6, 1 operation fused; "
        "a version that stores past the caches, for launches that write more than they hold",
        f"k.py:6:29: loop nest: {lanes}, 4 vectors at a time, 32 iterations, for tt.reduce on line 6, "
        "the tile of math.exp on line 5, 2 operations fused",
    ]
    kept = "is kept: it is used again later, and costs more to compute than to read"
    assert told(kernel, "in memory") == [
        f"k.py:4:11: in memory: 1024xf32 (`row`) {kept}",
        f"k.py:5:11: in memory: 1024xf32 (`row`) {kept}",
    ]
    assert told(kernel, "not fused") == [
        "k.py:6:5: not fused: tt.store on line 6 is not in the loops of tt.reduce on line 6: "
        "it needs the results of these",
        "k.py:6:29: not fused: tt.reduce on line 6 is not in the loops of tt.reduce on line 5: "
        "it needs the results of these",
    ]
    assert told(kernel, "vector access") == [
        "k.py:4:11: vector access: load of 1024xf32 by 8 lanes: element by element, as neighbours along dimension 0 "
        "are `stride` elements apart, which is known only at a launch",
        "k.py:6:5: vector access: store of 1024xf32 by 8 lanes: whole vectors",
    ]


@weft.jit
def transposed(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    tl.store(out + j * SIZE + i, tl.load(x + i * SIZE + j))


def test_lanes_along_another_dimension() -> None:
    kernel = made(transposed, "*fp64 *fp64", SIZE=32)
    assert told(kernel, "loop nest") == [
        "k.py:5:5: loop nest: over 32x32: 4 lanes of 64 bits along dimension 0, 4 vectors at a time, 64 iterations, "
        "for tt.store on line 5, 3 operations fused; prices of lanes: along 1 15.0, along 0 6.0"
    ]
    assert told(kernel, "vector access") == [
        "k.py:5:5: vector access: store of 32x32xf64 by 4 lanes: whole vectors",
        "k.py:5:34: vector access: load of 32x32xf64 by 4 lanes: transposed in registers, as neighbours along "
        "dimension 0 are 32 elements apart",
    ]


@weft.jit
def gathered(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.load(index + i)))
    tl.store(out + i, tl.load(x + 2 * i))


def test_gathered_elements_and_stores_to_one_array() -> None:
    kernel = made(gathered, "*fp32 *i32 *fp32", BLOCK=256)
    assert told(kernel, "vector access")[1] == (
        "k.py:4:23: vector access: load of 256xf32 by 8 lanes: element by element, as neighbours along dimension 0 "
        "are at addresses that are loaded"
    )
    assert (
        "every other element, as neighbours along dimension 0 are 2 elements apart" in told(kernel, "vector access")[-1]
    )


@weft.jit
def product(a, b, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    tl.store(out + i * SIZE + j, tl.dot(tl.load(a + i * SIZE + j), tl.load(b + i * SIZE + j)))


def test_a_product() -> None:
    kernel = made(product, "*fp16 *fp16 *fp32", SIZE=32)
    assert told(kernel, "register block") == [
        "k.py:5:34: register block: 32x32x32, f16 packed as f32: fma, 6 rows of 2 vectors of 8 lanes at a time"
    ]


def test_vectors_are_as_wide_as_told() -> None:
    kernel = made(softmax, "*fp32 *fp32 i32", BLOCK=1024)
    assert {nest.lanes for nest in kernel.remarks.of(weft.remarks.LoopNest)} == {8}
    assert "store <8 x float>" in kernel.asm["llir"] and "<16 x float>" not in kernel.asm["llir"]


@weft.jit
def one_by_one(x, index, counts, sums, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    values = tl.gather(tl.load(x + i), tl.load(index + i), 0)
    tl.atomic_add(sums + 2 * i, tl.cumsum(values, 0))
    tl.store(counts + tl.arange(0, 16), tl.histogram(tl.load(index + i), 16))


def test_what_has_no_lanes() -> None:
    kernel = made(one_by_one, "*fp32 *i32 *i32 *fp32", SIZE=64)
    lines = told(kernel, "loop nest")
    assert (
        "k.py:4:14: loop nest: over 64: 8 lanes of 32 bits along dimension 0, 1 vector at a time, 8 iterations, for "
        "tt.gather on line 4, 1 operation fused"
    ) in lines
    assert (
        "k.py:4:14: vector access: gather of 64xf32 by 8 lanes: element by element, as places are indices of the tile, "
        "which are data"
    ) in told(kernel, "vector access")
    assert (
        "k.py:6:41: loop nest: over 64: no lanes, as two elements may count in one bin, 1 element at a time, 64 "
        "iterations, for tt.histogram on line 6, 0 operations fused"
    ) in lines
    assert (
        "k.py:5:33: loop nest: over 64: 8 lanes of 32 bits along dimension 0, 1 vector at a time, 8 iterations, for "
        "tt.scan on line 5, 0 operations fused"
    ) in lines
    assert (
        "k.py:5:5: vector access: atomic of 64xf32 by 8 lanes: one after the other, as no instruction changes several "
        "places at once"
    ) in told(kernel, "vector access")


@weft.jit
def summed(a, b, out, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(n):
        total = tl.dot(tl.load(a + k * SIZE * SIZE + at), tl.load(b + at), total)
    tl.store(out + at, total)


def test_scratch_memory_and_what_is_fetched_ahead() -> None:
    kernel = made(summed, "*fp32 *fp32 *fp32 i32", SIZE=16)
    tile = "scratch buffer: 1024 bytes for a tile of 16x16xf32"
    assert told(kernel, "scratch buffer") == [
        f"k.py:4:13: {tile} (`total`), at byte 0, in use from line 5 to 7",
        f"k.py:6:59: {tile}, at byte 1024, in use on line 6",
    ]
    assert kernel.metadata.scratch_bytes == 2 * 1024
    assert told(kernel, "register block") == [
        "k.py:6:17: register block: 16x16x16, f32 packed as f32: fma, 6 rows of 2 vectors of 8 lanes at a time, "
        "the left operand read where it lies"
    ]
    assert told(kernel, "in memory")[0] == "k.py:5:14: in memory: 16x16xf32 (`total`) is kept: the loop carries it"
    ahead = "16x16xf32: while an iteration multiplies, it fetches the cache lines that the next one loads"
    assert told(kernel, "prefetched")[0] == f"k.py:6:24: prefetched: {ahead}"


@weft.jit
def row_sum(x, out, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    total = tl.zeros((SIZE,), tl.float32)
    for first in range(0, n, SIZE):
        total += tl.load(x + (first + i), mask=first + i < n, other=0.0)
    tl.store(out, tl.sum(total, 0))


def test_loops_that_are_fused() -> None:
    kernel = made(row_sum, "*fp32 *fp32 i32", SIZE=1024)
    assert told(kernel, "loop fused") == [
        "k.py:5:18: loop fused: the loop: it runs where a reduction reads what it gives, and the tiles that it carries "
        "stay in registers"
    ]
    assert told(kernel, "in memory") == told(kernel, "scratch buffer") == []


@weft.jit
def long_product(a, b, out, n, SIZE: tl.constexpr):
    i, j, k = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, 32)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for first in range(0, n, 32):
        total = tl.dot(tl.load(a + i * n + first + k[None, :]), tl.load(b + (first + k[:, None]) * SIZE + j), total)
    tl.store(out + i * SIZE + j, total)


@pytest.mark.parametrize(
    ("cpu", "features", "elements", "block"),
    [
        ("skylake-avx512", "+avx512f,+fma", "fp32", (16, 6, 4)),
        ("haswell", "+avx2,+fma", "fp32", (8, 6, 2)),
        ("haswell", "+avx2,+fma", "i8", (8, 4, 2)),
        ("sandybridge", "+avx,-fma", "fp32", (8, 4, 2)),
        ("neoverse-v1", "", "fp32", (4, 6, 4)),
    ],
)
def test_blocks_of_registers(cpu: str, features: str, elements: str, block: tuple[int, int, int]) -> None:
    types = f"*{elements} *{elements} *fp32"
    kernel = compiled(product, "cpu", types, {"SIZE": 64}, cpu=cpu, features=features, vector_bits=32 * block[0])
    assert [(r.lanes, r.rows, r.vectors) for r in kernel.remarks.of(weft.remarks.RegisterBlock)] == [block]


def test_products_in_tile_registers() -> None:
    processor = {"cpu": "sapphirerapids", "features": "+amx-tile,+amx-bf16,+avx512f,+avx512bf16", "vector_bits": 512}
    kernel = compiled(long_product, "cpu", "*bf16 *bf16 *fp32 i32", {"SIZE": 128}, **processor)
    assert told(kernel, "register block") == [
        "k.py:6:17: register block: 128x128x32, bf16 packed as bf16: tdpbf16ps, 2 rows of 2 tiles of 16 rows and 16 "
        "lanes at a time"
    ]
    assert told(kernel, "product waits") == [
        "k.py:6:17: product waits: its sums are taken up once for 8 iterations, a depth of 256"
    ]
    kernel = compiled(long_product, "cpu", "*bf16 *bf16 *fp32 i32", {"SIZE": 16}, **processor, matrix_units=False)
    assert told(kernel, "instruction declined") == [
        "k.py:6:17: instruction declined: not tdpbf16ps: it needs amx-bf16, 16 rows, 16 columns and a depth of 32, and "
        "matrix_units=True",
        "k.py:6:17: instruction declined: not vdpbf16ps: it needs avx512bf16, vectors of 512 bits, 16 columns and a "
        "depth of 2, and matrix_units=True",
    ]
