"""How tiles go to and from shared memory, and how elements are looked up: the whole text."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.gluon import language as gl

from .telling import compiled, told


@gluon.jit
def turned(x, out, PER: gl.constexpr, PHASES: gl.constexpr, VECTOR: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])
    i = gl.arange(0, 32, gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, 32, gl.SliceLayout(0, rows))[None, :]
    memory = gl.allocate_shared_memory(gl.float32, [32, 32], gl.SwizzledSharedLayout(VECTOR, PER, PHASES, [1, 0]))
    memory.store(gl.load(x + i * 32 + j))
    value = memory.load(columns)
    m = gl.arange(0, 32, gl.SliceLayout(1, columns))[:, None]
    n = gl.arange(0, 32, gl.SliceLayout(0, columns))[None, :]
    gl.store(out + m + n * 32, value)


@pytest.mark.parametrize(
    "phases, conflicts",
    [(1, "32 wavefronts each, 31 of them lost to bank conflicts"), (32, "1 wavefront each, no bank conflicts")],
)
def test_bank_conflicts(phases: int, conflicts: str) -> None:
    """A column of 32 rows of 128 bytes is in one bank, but where rows are swizzled."""
    made = compiled(turned, "cuda:80", "*fp32 *fp32", {"PER": 1, "PHASES": phases, "VECTOR": 1}, "x out")
    assert told(made, "shared access") == [
        "k.py:8:5: shared access: store of 32x32xf32 by 8 plain accesses of 4 bytes a lane, 1 wavefront each, no bank "
        "conflicts",
        f"k.py:9:13: shared access: load of 32x32xf32 by 8 plain accesses of 4 bytes a lane, {conflicts}",
    ]


@weft.jit
def looked_up(x, index, out, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


def test_gather() -> None:
    made = compiled(looked_up, "cuda:80", "*fp32 *i32 *fp32", {"SIZE": 128}, "x index out")
    (remark,) = made.remarks.of(weft.remarks.Gathered)
    assert remark.plan == "shared" and remark.cycles > 0
    assert told(made, "gather")[0].startswith("k.py:4:23: gather: of 128xf32: by shared, ")
    assert "not shuffles (not possible: " in told(made, "gather")[0]


@weft.jit
def product(a, b, out, SIZE: tl.constexpr, PRECISION: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision=PRECISION))


def test_products_that_are_split() -> None:
    made = compiled(product, "cuda:80", "*fp32 *fp32 *fp32", {"SIZE": 32, "PRECISION": "tf32x3"}, "a b out")
    assert told(made, "product split") == [
        "k.py:4:24: product split: 32x32xf32: 3 products of tf32 have nearly all bits of f32, as input_precision asks"
    ]
    assert sum(p.times for p in made.remarks.of(weft.remarks.ProductBy)) == 3
    made = compiled(product, "cuda:80", "*fp8e5 *fp8e5 *fp32", {"SIZE": 32, "PRECISION": None}, "a b out")
    assert told(made, "product split") == [
        "k.py:4:24: product split: 32x32xf32: f8E5M2 is multiplied as f16, as cuda:80 has no instruction for it"
    ]


@gluon.jit
def picked(x, index, out, SIZE: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, SIZE, layout)
    memory = gl.allocate_shared_memory(gl.float32, [SIZE], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + i))
    gl.store(out + i, memory.gather(gl.load(index + i), 0))


def test_elements_that_indices_pick() -> None:
    made = compiled(picked, "cuda:80", "*fp32 *i32 *fp32", {"SIZE": 128}, "x index out")
    assert (
        "k.py:7:23: access width: gather of 128xf32, 4 bytes at a time of at most 16: each element is where its index "
        "says"
    ) in told(made, "access width")
