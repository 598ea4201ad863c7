"""Between which accesses each barrier stands: the whole text, and that there are as many as the lane program has."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl
from weft.remarks import Barrier

from .telling import compiled, told


@weft.jit
def softmax(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.load(x + i)
    row = tl.exp(row - tl.max(row, 0))
    tl.store(out + i, row / tl.sum(row, 0))


def test_of_two_reductions() -> None:
    made = compiled(softmax, "cuda:80", "*fp32 *fp32", {"BLOCK": 1024}, "x out")
    lines = told(made, "barrier")
    assert lines == [
        "k.py:5:24: barrier: of the block, between a store on line 5 and a load on line 5, "
        "in shared memory for a reduction",
        "k.py:6:29: barrier: of the block, between a load on line 5 and a store on line 6, "
        "in shared memory for a reduction",
        "k.py:6:29: barrier: of the block, between a store on line 6 and a load on line 6, "
        "in shared memory for a reduction",
    ]


@weft.jit
def stored_and_loaded(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i)
    tl.store(x + i, tl.load(x + BLOCK - 1 - i) + 1)


def test_of_global_memory() -> None:
    made = compiled(stored_and_loaded, "cuda:90", "*i32", {"BLOCK": 256}, "x")
    assert told(made, "barrier") == [
        "k.py:5:5: barrier: of the block, between a load on line 5 and a store on line 5, in global memory",
        "k.py:5:21: barrier: of the block, between a store on line 4 and a load on line 5, in global memory",
    ]


@weft.jit
def authors(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, i)
    tl.debug_barrier()
    tl.store(x + i, tl.load(x + BLOCK - 1 - i) + 1)


def test_what_the_author_wrote_has_no_remark() -> None:
    made = compiled(authors, "cuda:90", "*i32", {"BLOCK": 256}, "x")
    assert made.asm["lane"].count("barrier {") == 2
    assert [b.earlier.what for b in made.remarks.of(Barrier)] == ["a load"]


@weft.jit
def transposed_twice(x, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)[:, None]
    j = tl.arange(0, SIZE)[None, :]
    tile = tl.load(x + i * SIZE + j)
    tl.store(out + j * SIZE + i, tile)
    tl.store(out + SIZE * SIZE + i * SIZE + j, tl.trans(tile) + tile)


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_each_has_a_remark(target: str) -> None:
    for kernel, types, constants in (
        (softmax, "*fp32 *fp32", {"BLOCK": 512}),
        (transposed_twice, "*fp32 *fp32", {"SIZE": 32}),
    ):
        made = compiled(kernel, target, types, constants)
        barriers = made.remarks.of(Barrier)
        assert made.asm["lane"].count("barrier {") == sum(b.times for b in barriers) > 1
