"""What arrays hold decides about branches, loops and addresses: it is read where it is at hand, else supposed."""

from __future__ import annotations

import re

import numpy as np

import weft
import weft.language as tl
from weft import like
from weft.explain import Explanation


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
