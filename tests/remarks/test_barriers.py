"""Between which accesses each barrier stands: the whole text, and that there are as many as the lane program has."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.gluon import language as gl
from weft.gluon.language.nvidia.hopper import mbarrier, tma
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
        assert made.asm["lane"].count("barrier {") == sum(b.times for b in barriers) > 0


@weft.jit
def released(x, flag, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1)
    tl.atomic_add(flag, 1, sem="release")


def test_before_an_atomic_that_releases() -> None:
    """One lane says that all have stored."""
    made = compiled(released, "cuda:90", "*i32 *i32", {"BLOCK": 256}, "x")
    assert told(made, "barrier") == [
        "k.py:4:5: barrier: of the block, between the stores before it and an atomic that releases them, "
        "in global memory"
    ]


@weft.jit
def scattered(x, index, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + tl.load(index + i), i)


def test_before_a_check() -> None:
    made = compiled(scattered, "cuda:90", "*i32 *i32", {"BLOCK": 256}, debug=True, sanitize_overflow=True)
    assert told(made, "barrier")[-1] == (
        "k.py:4:5: barrier: of the block, between a store and the check of what it stored, in global memory"
    )


@gluon.jit
def copied_in_bulk(source, target, SIZE: gl.constexpr):
    memory = gl.allocate_shared_memory(gl.float16, [SIZE, SIZE], source.layout)
    ready = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(ready, count=1)
    mbarrier.expect(ready, source.block_type.nbytes)
    tma.async_copy_global_to_shared(source, [0, 0], ready, memory)
    mbarrier.wait(ready, 0)
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    memory.store(memory.load(layout) + 1)
    tma.async_copy_shared_to_global(target, [0, 0], memory)
    tma.store_wait(0)


def test_fences_and_bulk_copies() -> None:
    shape = "tensordesc<fp16[128, 128],NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)>"
    made = compiled(copied_in_bulk, "cuda:90", f"{shape} {shape}".replace(", ", ","), {"SIZE": 128})
    assert told(made, "bulk copy") == [
        "k.py:7:5: bulk copy: load of 128x128xf16 as 2 boxes of 128x64, swizzled by 128 bytes, begun by 2 warps",
        "k.py:11:5: bulk copy: store of 128x128xf16 as 2 boxes of 128x64, swizzled by 128 bytes, begun by one lane",
    ]
    assert told(made, "fence") == [
        "k.py:5:5: fence: of the asynchronous proxy, between the making of an mbarrier on line 5 and the copy engine",
        "k.py:11:5: fence: of the asynchronous proxy, between a store on line 10 and a bulk copy on line 11",
    ]
