"""How wide each access is, and the value that keeps it from more: the whole text."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.gluon import language as gl
from weft.remarks import AccessWidth

from .telling import compiled, told


@weft.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@weft.jit
def rows(x, out, stride, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + tl.program_id(0) * stride + i))


@weft.jit
def columns(x, out, s, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    r = tl.arange(0, ROWS)[:, None]
    c = tl.arange(0, COLUMNS)[None, :]
    tl.store(out + r * COLUMNS + c, tl.load(x + r * COLUMNS + c * s))


@weft.jit
def every(x, out, STEP: tl.constexpr, START: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * STEP + START))


@weft.jit
def gathered(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = tl.load(index + i)
    tl.store(out + i, tl.load(x + at))


@weft.jit
def from_a_number(x, start, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    first = tl.load(start)
    tl.store(out + i, tl.load(x + first + i))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "cuda:75"])
def test_as_wide_as_can_be(target: str) -> None:
    made = compiled(copy, target, "*fp32 *fp32 i32", {"BLOCK": 1024}, "x out n")
    assert told(made, "access width") == [
        "k.py:4:5: access width: store of 1024xf32, 16 bytes at a time, the most there are",
        "k.py:4:23: access width: load of 1024xf32, 16 bytes at a time, the most there are",
    ]


def test_a_stride_that_is_known_to_be_nothing() -> None:
    made = compiled(columns, "cuda:80", "*fp32 *fp32 i32", {"ROWS": 32, "COLUMNS": 32}, "x out s")
    assert told(made, "access width") == [
        "k.py:5:5: access width: store of 32x32xf32, 16 bytes at a time, the most there are",
        "k.py:5:37: access width: load of 32x32xf32, 4 bytes at a time of at most 16: "
        "neighbours along dimension 1 are `s` elements apart, which is not known to be 1",
    ]


def test_a_stride_that_is_a_number() -> None:
    made = compiled(every, "cuda:80", "*fp32 *fp32", {"STEP": 3, "START": 0, "BLOCK": 1024}, "x out")
    assert told(made, "access width")[1] == (
        "k.py:4:23: access width: load of 1024xf32, 4 bytes at a time of at most 16: "
        "neighbours in the tile are 3 elements apart"
    )


def test_addresses_that_are_loaded() -> None:
    made = compiled(gathered, "cuda:80", "*fp32 *i32 *fp32", {"BLOCK": 1024}, "x index out")
    assert told(made, "access width")[-1] == (
        "k.py:5:23: access width: load of 1024xf32, 4 bytes at a time of at most 16: `at`, a value loaded from memory, "
        "does not step by 1 between neighbours in the tile, as far as is known (line 4)"
    )


def test_more_threads_than_elements() -> None:
    made = compiled(copy, "cuda:80", "*fp32 *fp32 i32", {"BLOCK": 2}, "x out n")
    assert told(made, "access width")[1] == (
        "k.py:4:23: access width: load of 2xf32, 4 bytes at a time of at most 16: the tile has 1 element for each "
        "thread"
    )


@gluon.jit
def in_a_layout(x, out, SIZE: gl.constexpr):
    i = gl.arange(0, SIZE)[:, None]
    j = gl.arange(0, SIZE)[None, :]
    narrow: gl.constexpr = gl.BlockedLayout([1, 2], [1, 32], [4, 1], [1, 0])
    at = gl.set_auto_layout(i * SIZE + j, narrow)
    gl.store(out + at, gl.load(x + at))


def test_a_layout_of_short_runs() -> None:
    made = compiled(in_a_layout, "cuda:90", "*fp32 *fp32", {"SIZE": 64}, "x out")
    assert told(made, "access width")[0] == (
        "k.py:7:5: access width: store of 64x64xf32, 8 bytes at a time of at most 16: the layout gives a thread 2 "
        "elements in a row, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], "
        "order = [1, 0]}>"
    )


@gluon.jit
def by_columns(x, out, SIZE: gl.constexpr):
    i = gl.arange(0, SIZE)[:, None]
    j = gl.arange(0, SIZE)[None, :]
    square: gl.constexpr = gl.BlockedLayout([2, 2], [4, 8], [4, 1], [1, 0])
    at = gl.set_auto_layout(j * SIZE + i, square)
    gl.store(out + at, gl.load(x + at))


def test_a_layout_whose_registers_are_in_another_order() -> None:
    made = compiled(by_columns, "cuda:90", "*fp32 *fp32", {"SIZE": 64}, "x out")
    assert told(made, "access width")[0] == (
        "k.py:7:5: access width: store of 64x64xf32, 4 bytes at a time of at most 16: its author's #ttg.blocked<{"
        "sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> has 2 in a row, in "
        "registers that are apart; relayout=True would take them together"
    )
    made = compiled(by_columns, "cuda:90", "*fp32 *fp32", {"SIZE": 64}, "x out", relayout=True)
    assert ", 8 bytes at a time of at most 16: the layout gives a thread 2 elements" in told(made, "access width")[0]


@weft.jit
def added_up(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.atomic_add(out + i, tl.load(x + i))
    tl.atomic_max(out + i, tl.load(x + i))


def test_atomics() -> None:
    """Sums of up to 16 bytes from sm_90 on; 2 of f16 before; else one at a time."""
    made = compiled(added_up, "cuda:90", "*fp32 *fp32", {"BLOCK": 1024}, "x out")
    assert told(made, "access width")[0] == (
        "k.py:4:5: access width: atomic of 1024xf32, 16 bytes at a time, the most there are"
    )
    made = compiled(added_up, "cuda:80", "*fp32 *fp32", {"BLOCK": 1024}, "x out")
    assert told(made, "access width")[0] == (
        "k.py:4:5: access width: atomic of 1024xf32, 4 bytes at a time, the most there are"
    )


@weft.jit
def scaled_rows(x, weight, out, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    row = tl.program_id(0) * stride
    value = tl.load(x + row + i, mask=i < n) * tl.load(weight + i, mask=i < n)
    tl.store(out + row + i, value, mask=i < n)


def test_rows_that_begin_anywhere() -> None:
    made = compiled(scaled_rows, "cuda:80", "*fp32 *fp32 *fp32 i32 i32", {"BLOCK": 1024}, "x weight out")
    aligned = "by aligned vectors of 16 bytes, wherever the row begins"
    assert told(made, "row aligned") == [
        f"k.py:5:13: row aligned: load of 1024xf32 {aligned}: `stride` is not known to be a multiple of 4",
        "k.py:5:48: row aligned: load of 1024xf32 by aligned vectors of 16 bytes, shifted between threads: the rows "
        "that are stored are aligned otherwise",
        f"k.py:6:5: row aligned: store of 1024xf32 {aligned}: `stride` is not known to be a multiple of 4",
    ]
    assert told(made, "access width") == []


@weft.jit
def in_a_loop(x, out, n, step, S: tl.constexpr):
    i = tl.arange(0, S)[:, None]
    j = tl.arange(0, S)[None, :]
    total = tl.zeros((S, S), tl.float32)
    there = x + i * S + j
    for k in range(n):
        total += tl.load(x + k + i * S + j)
        total += tl.load(there)
        there += step
    tl.store(out + i * S + j, total, mask=total > 0)


def test_values_that_a_loop_counts_or_carries() -> None:
    made = compiled(in_a_loop, "cuda:90", "*fp32 *fp32 i32 i32", {"S": 32}, "x out")
    narrow = "32x32xf32, 4 bytes at a time of at most 16:"
    assert told(made, "access width") == [
        f"k.py:8:18: access width: load of {narrow} `k` is not known to be a multiple of 4 (line 7)",
        f"k.py:9:18: access width: load of {narrow} `step` is not known to be a multiple of 4",
        f"k.py:11:5: access width: store of {narrow} the mask may change between them: the result of arith.cmpf is not "
        "known to be the same for 4 neighbours",
    ]


@weft.jit
def indices(x, out, n, S: tl.constexpr):
    i = tl.arange(0, S)[:, None]
    j = tl.arange(0, S)[None, :]
    a = tl.load(x + i * S + j // 2)
    b = tl.load(x + i * S + j + tl.program_id(0) * 3)
    c = tl.load(x + i * S + S - 1 - j)
    tl.store(out + i * S + j, a + b + c)


def test_indices_that_do_not_step_by_one() -> None:
    made = compiled(indices, "cuda:90", "*fp32 *fp32 i32", {"S": 32}, "x out")
    step = "does not step by 1 between neighbours along dimension 1, as far as is known"
    assert [remark.fact for remark in made.remarks.of(AccessWidth) if remark.access == "load"] == [
        "neighbours along dimension 1 may have the same address, as they are divided by a number",
        "the index of the program is not known to be a multiple of 4",
        f"the result of arith.subi {step}",
    ]


@weft.jit
def padded_rows(x, out, rows, stride, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)[None, :]
    for row in range(tl.program_id(0), rows, 4):
        r = row + tl.arange(0, 4)[:, None]
        tl.store(out + r * BLOCK + i, tl.load(x + r * stride + i, mask=i < n, other=0.0))


@weft.jit
def beginning_anew(x, out, n, stride, BLOCK: tl.constexpr):
    i = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    k = tl.arange(0, 16)[:, None]
    tl.store(out + k * BLOCK + tl.arange(0, BLOCK)[None, :], tl.load(x + k * stride + i[None, :]))


def test_a_stride_is_told_before_the_counter_that_it_is_multiplied_by() -> None:
    made = compiled(padded_rows, "cuda:90", "*fp32 *fp32 i32 i32 i32", {"BLOCK": 1024}, "x out")
    load = next(remark for remark in made.remarks.of(AccessWidth) if remark.access == "load")
    assert (load.limit, load.value, load.spoil) == ("alignment", "stride", ("stride", "n"))


def test_a_remainder_is_told_by_its_divisor() -> None:
    made = compiled(beginning_anew, "cuda:90", "*fp32 *fp32 i32 i32", {"BLOCK": 64}, "x out")
    load = next(remark for remark in made.remarks.of(AccessWidth) if remark.access == "load")
    assert load.fact == "the index may begin anew between them: `n` is not known to be a multiple of 4"
    assert (load.limit, load.spoil) == ("wrap", ("stride", "n"))


@weft.jit
def stepping(x, out, stride, n, BLOCK: tl.constexpr):
    at = x + tl.arange(0, 16)[:, None] * stride + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros((16, BLOCK), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(at, mask=tl.arange(0, BLOCK)[None, :] < n - start, other=0.0)
        at += BLOCK
    tl.store(out + tl.arange(0, 16)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], total)


def test_what_a_loop_adds_to_a_pointer_spoils_nothing() -> None:
    made = compiled(stepping, "cuda:90", "*fp32 *fp32 i32 i32", {"BLOCK": 64}, "x out")
    load = next(remark for remark in made.remarks.of(AccessWidth) if remark.access == "load")
    assert load.spoil == ("stride", "n")
