"""What is fused into which loops on the CPU, along what these are vectorised, and what is kept: the whole text."""

from __future__ import annotations

from typing import Any

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
        f"k.py:6:5: loop nest: {lanes}, 1 vector at a time, 128 iterations, for tt.store on line 6, 1 operation fused",
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
        "k.py:5:34: register block: 32x32x32, f16 packed as f32: fma, 4 rows of 2 vectors of 8 lanes at a time"
    ]


def test_vectors_are_as_wide_as_told() -> None:
    kernel = made(softmax, "*fp32 *fp32 i32", BLOCK=1024)
    assert {nest.lanes for nest in kernel.remarks.of(weft.remarks.LoopNest)} == {8}
    assert "store <8 x float>" in kernel.asm["llir"] and "<16 x float>" not in kernel.asm["llir"]
