"""What is done otherwise than it is written: the whole text."""

from __future__ import annotations

import weft
import weft.language as tl

from .telling import compiled, told


@weft.jit
def rows_added(x, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.arange(0, ROWS)
    j = tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS,), tl.float32)
    for first in range(0, n, COLUMNS):
        total += tl.sum(tl.load(x + i[:, None] * n + first + j[None, :]), axis=1)
    tl.store(out + i, total)


def test_sums_in_parts() -> None:
    made = compiled(rows_added, "cuda:90", "*fp32 *fp32 i32", {"ROWS": 32, "COLUMNS": 64}, "x out n")
    assert told(made, "sum in parts") == [
        "k.py:7:9: sum in parts: 32xf32: each lane adds up its own part, and lanes are combined once, after the loop "
        "(tt.reduce on line 7)"
    ]


@weft.jit
def scores(q, k, out, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    left = tl.load(q + at)
    right = tl.load(k + at)
    first = tl.dot(left, right)
    second = tl.dot(right, left)
    tl.store(out + at, first + second)


def test_products_that_begin_together() -> None:
    made = compiled(scores, "cuda:90", "*fp16 *fp16 *fp32", {"SIZE": 64}, "q k out")
    assert told(made, "products joined") == [
        "k.py:7:14: products joined: 2 products: they begin together and are awaited once, as none needs another's "
        "result (ttng.warp_group_dot on line 8)"
    ]
    assert told(made, "stored once") == [
        "k.py:8:24: stored once: 64x64xf16: it is in shared memory (ttg.local_alloc on line 7) (2 times)"
    ]


@weft.jit
def exact(a, b, out, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    left = tl.load(a + i * SIZE + j)
    right = tl.load(b + i * SIZE + j)
    tl.store(out + i * SIZE + j, tl.dot(left, right, input_precision="ieee"))


def test_operands_of_multiplications_by_lanes() -> None:
    made = compiled(exact, "cuda:80", "*fp32 *fp32 *fp32", {"SIZE": 64}, "a b out")
    lines = told(made, "operand in memory")
    assert lines[0] == (
        "k.py:4:12: operand in memory: 64x64xf32: a lane has 512 elements of it, and needs a few at a time "
        "(tt.dot on line 6)"
    )
    assert len(lines) == 2
    assert told(made, "loads spread")[0] == (
        "k.py:6:34: loads spread: an operand in shared memory: its 512 registers are loaded in parts, each before the "
        "first product that needs it"
    )


@weft.jit
def softmax(x, out, n, B: tl.constexpr):
    row, i = tl.program_id(0).to(tl.int64) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(value - tl.max(value, 0))
    tl.store(out + row + i, (e / tl.sum(e, 0)).to(out.dtype.element_ty), mask=i < n)


def test_programs_that_would_hold_too_much() -> None:
    made = compiled(softmax, "cuda:90", "*fp32 *fp32 i32", {"B": 65536}, "x out n", num_warps=32)
    held, loaded = told(made, "in parts")
    assert held.startswith("in parts: tiles are computed some registers at a time: a thread has room for ")
    assert held.endswith(" words of each thread wait in shared memory")
    assert loaded == (
        "k.py:4:13: in parts: what is loaded from here on is used up some registers at a time: a thread would hold 44 "
        "words at a time, for one block, and holds 19, for two"
    )


@weft.jit
def divergence(x, y, out, n, B: tl.constexpr):
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    a = tl.load(x + row + i, mask=i < n, other=1.0)
    b = tl.load(y + row + i, mask=i < n, other=1.0)
    tl.store(out + tl.program_id(0), tl.sum(b * (tl.log(b) - a)))


def test_large_blocks_that_use_up_what_they_load() -> None:
    made = compiled(divergence, "cuda:90", "*fp32 *fp32 *fp32 i32", {"B": 16384}, "x y out n", num_warps=16)
    (line,) = told(made, "in parts")
    assert line == (
        "k.py:4:9: in parts: what is loaded from here on is used up some registers at a time: a thread would hold "
        "103 words at a time, for one block, and holds 22, for two"
    )


@weft.jit
def transposed(x, out, n, A: tl.constexpr):
    i, j = tl.program_id(0) * A + tl.arange(0, A)[:, None], tl.program_id(1) * A + tl.arange(0, A)[None, :]
    tile = tl.load(x + i * n + j, mask=(i < n) & (j < n))
    tl.store(out + tl.trans(j) * n + tl.trans(i), tl.trans(tile), mask=tl.trans((i < n) & (j < n)))


def test_few_blocks_at_a_time() -> None:
    made = compiled(transposed, "cuda:90", "*fp16 *fp16 i32", {"A": 64}, "x out")
    assert told(made, "few blocks") == [
        "k.py:4:12: few blocks: at most 3 blocks on a multiprocessor: rows begin anywhere, so that the loads of a "
        "block touch 16256 bytes of cache lines, of which 61440 at a time are best"
    ]
    assert made.asm["lane"].splitlines()[1] == "  at most 3 blocks at a time"
