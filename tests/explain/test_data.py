"""What arrays hold decides about branches, loops and addresses: it is read where it is at hand, else supposed."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import gluon, like
from weft.explain import Explanation
from weft.explain.supposed import supposing
from weft.gluon import language as gl
from weft.ir.lane import LaneProgram


@weft.jit
def where_asked(x, labels, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    if label < 0:
        tl.store(out + row, 0.0)
        return
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(out + row, tl.sum(total, 0) + tl.load(x + row * n + label))


@weft.jit
def packed_sums(x, starts, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    end = tl.load(starts + row + 1)
    for start in range(tl.load(starts + row), end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + at, mask=at < end, other=0.0)
    tl.store(out + row, tl.sum(total, 0))


ROWS, COLUMNS = 64, 4096
X, OUT = like((ROWS, COLUMNS), "fp32"), like((ROWS,), "fp32")


def of_labels(labels: object) -> Explanation:
    return where_asked.explain(X, labels, OUT, COLUMNS, BLOCK=1024, grid=(ROWS,), target="cuda:90")


def loaded(e: Explanation) -> int:
    return e.counts.total.get("global_load_bytes", 0)


def test_branches_go_where_the_data_says() -> None:
    labels = np.arange(ROWS, dtype=np.int64)
    every = of_labels(labels)
    assert every.counts.exact and loaded(every) >= ROWS * COLUMNS * 4
    none = of_labels(np.full(ROWS, -1, np.int64))
    assert none.counts.exact and loaded(none) < every.counts.total["global_load_bytes"] / 10
    half = of_labels(np.where(labels < ROWS // 2, labels, -1))
    assert 0.35 < loaded(half) / loaded(every) < 0.65 and not half.counts.exact  # a sample stands for all


def test_without_data_the_time_is_from_the_least_to_the_most() -> None:
    e, every, none = map(of_labels, (like((ROWS,), "i64"), np.zeros(ROWS, np.int64), np.full(ROWS, -1, np.int64)))
    assert e.time is not None and every.time is not None and none.time is not None
    assert e.time.low <= 1.01 * none.time.low and e.time.high >= 0.99 * every.time.high
    assert "depends on data" in e.counts.note and "counted as if" in e.counts.note


def test_loops_are_as_long_as_the_data_says() -> None:
    starts = np.concatenate([[0], np.cumsum(np.full(ROWS, 512))]).astype(np.int32)
    x = np.zeros(starts[-1], np.float32)
    e = packed_sums.explain(x, starts, OUT, BLOCK=256, grid=(ROWS,), target="cuda:90")
    assert e.counts.exact and e.counts.total["global_load_bytes"] >= x.nbytes
    x, starts = like(ROWS * 512, "fp32"), like(ROWS + 1, "i32")
    unknown = packed_sums.explain(x, starts, OUT, BLOCK=256, grid=(ROWS,), target="cuda:90")
    assert unknown.time is not None and e.time is not None and not unknown.counts.exact
    assert unknown.time.low < e.time.low < e.time.high <= 1.2 * unknown.time.high
    assert "depends on data" in unknown.counts.note
    assert re.search(r"as if it had \d+ iterations, which goes through all of `x` once; the least", unknown.counts.note)


@weft.jit
def packed_product(a, b, lengths, out, BLOCK: tl.constexpr, WS: tl.constexpr):
    program = tl.program_id(0)
    acc = tl.zeros([BLOCK, BLOCK], tl.float32)
    for at in tl.range(0, tl.load(lengths + program), BLOCK, warp_specialize=WS):
        acc = tl.dot(a.load([program * BLOCK, at]), b.load([at, 0]), acc)
    i, j = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    tl.store(out + (program * BLOCK + i) * BLOCK + j, acc)


def test_data_is_read_beside_descriptors() -> None:
    """Whether threads load their blocks or the copy engine does, for which the kernel has further parameters."""
    lengths = np.arange(16, dtype=np.int32) * 128
    a, b = (weft.TensorDescriptor(like(s, "fp16"), s, [s[1], 1], [64, 64]) for s in ([1024, 2048], [2048, 64]))
    for asked in (False, True):
        e = packed_product.explain(
            a, b, lengths, like((1024, 64), "fp32"), BLOCK=64, WS=asked, grid=(16,), target="cuda:90"
        )
        assert bool(e.remarks.of("warps specialized")) == asked
        assert e.counts.exact
        products = sum(n for kind, n in e.counts.total.items() if kind.startswith("kind:wgmma.m64n64k16"))
        assert products == 4 * 4 * (lengths // 64).sum()  # of each of four warps, and of each 16 of 64


def test_arrays_that_are_written_are_not_read() -> None:
    """What a program finds there depends on those before it."""
    labels = np.zeros(ROWS, np.int64)
    e = where_asked.explain(X, labels, labels, COLUMNS, BLOCK=1024, grid=(ROWS,), target="cuda:90")
    assert e.counts.counted  # two arguments, one array: what is read is what was there before the launch

    @weft.jit
    def counted_up(at, x, BLOCK: tl.constexpr):
        first = tl.load(at)
        tl.store(at, first + BLOCK)
        if first < 0:
            tl.store(x + tl.arange(0, BLOCK), 0.0)

    e = counted_up.explain(np.zeros(1, np.int32), X, BLOCK=128, grid=(4,), target="cuda:90")
    assert "depends on data" in e.counts.note


@weft.jit
def paged_sums(pages, table, lengths, out, most, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total, largest = tl.zeros([BLOCK], tl.float32), tl.full([BLOCK], -1.0, tl.float32)
    length = tl.load(lengths + row)
    for i in range(tl.cdiv(length, BLOCK)):
        page = tl.load(table + row * most + i)
        x = tl.load(pages + page * BLOCK + tl.arange(0, BLOCK))
        total += tl.where(i * BLOCK + tl.arange(0, BLOCK) < length, x, 0.0)
        largest = tl.maximum(largest, x)
    tl.store(out + row, tl.sum(total, 0) + tl.max(largest, 0))


PAGES, TABLE, LENGTHS = like((4096, 128), "fp32"), like((ROWS, 32), "i32"), like((ROWS,), "i32")


def test_a_number_that_all_warps_load_is_one_element() -> None:
    """The table has a number for each iteration, of which every warp reads a sector."""
    e = paged_sums.explain(PAGES, TABLE, LENGTHS, OUT, 32, BLOCK=128, grid=(ROWS,), target="cuda:90")
    assert "as if it had 32 iterations, which goes through all of `table` once" in e.counts.note
    known = np.full(ROWS, 32 * 128, np.int32)
    e_known = paged_sums.explain(PAGES, TABLE, known, OUT, 32, BLOCK=128, grid=(ROWS,), target="cuda:90")
    assert e.time is not None and e_known.time is not None
    assert abs(e.time.microseconds / e_known.time.microseconds - 1) < 0.05
    assert e.time.low < 0.7 * e_known.time.low  # no iteration at least


def test_how_often_a_loop_turns_is_not_supposed() -> None:
    """Of integers from memory, those that addresses are made of are taken to be random; a length would take long to
    follow and say nothing. What is at hand is not supposed."""
    x = like(ROWS * 128, "fp32")
    program = paged_sums.warmup(x, TABLE, LENGTHS, OUT, 32, BLOCK=128, grid=(ROWS,), target="sim:cuda:90").program

    def integers(program: LaneProgram) -> int:
        loads = [op for op in program.body.walk() if op.name == "load"]
        return sum(op.result.elem == "i32" for op in loads)

    assert (integers(program), integers(supposing(program)), integers(supposing(program, {"table"}))) == (2, 1, 2)


@gluon.jit
def looked_up(x, index, out, BLOCK: gl.constexpr, VECTOR: gl.constexpr):
    pieces: gl.constexpr = gl.BlockedLayout([VECTOR], [32], [4], [0])
    single: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.program_id(0) * BLOCK
    at = gl.convert_layout(gl.load(index + i + gl.arange(0, BLOCK, layout=pieces)), single)
    gl.store(out + i + gl.arange(0, BLOCK, layout=single), gl.load(x + at * 64))


def test_indices_are_supposed_by_way_of_shared_memory() -> None:
    """Elements that are looked up one by one lie in a sector each, also if the indices changed their layout before."""
    arrays = like(1 << 22, "fp32"), like(1 << 20, "i32"), like(1 << 20, "fp32")
    straight, moved = (
        looked_up.explain(*arrays, BLOCK=2048, VECTOR=vector, grid=512, target="cuda:90") for vector in (1, 4)
    )
    assert [c.is_free for c in (*straight.conversions, *moved.conversions)] == [True, False]
    assert straight.time is not None and moved.time is not None
    assert abs(moved.time.microseconds / straight.time.microseconds - 1) < 0.1


@weft.jit
def rows_of_a_table(x, index, out, n, BLOCK: tl.constexpr):
    program, i = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    row = tl.load(index + program)
    tl.store(out + program * n + i, tl.load(x + row * n + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(("rows", "part"), [(16384, 1.0), (1024, 0.5)])
def test_what_is_looked_up_again_may_have_left_the_cache(rows: int, part: float) -> None:
    """A table of 134 MB is larger than the L2 cache: indices that are known do not make it fit. One of 8 MB fits."""
    x, out = (weft.MockTensor("bf16", (n, 4096)) for n in (rows, 32768))
    known = np.random.default_rng(0).integers(0, rows, 32768)

    def time(index: Any) -> float:
        with weft.target("cuda:90", device="H200"):
            return rows_of_a_table.explain(x, index, out, 4096, BLOCK=4096, num_warps=8, grid=32768).time.microseconds

    of_bytes = 2 * 32768 * 8192 / 4.2e6
    assert time(known) == pytest.approx(time(weft.MockTensor("i64", (32768,))), rel=0.05)
    assert time(known) == pytest.approx(part * of_bytes, rel=0.15)
