"""How wide each access is, and the value that keeps it from more: the whole text."""

from __future__ import annotations

import pytest

import weft
import weft.language as tl

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
        "k.py:4:5: access width: store of 1024xf32 with 16 bytes at a time, the most there are",
        "k.py:4:23: access width: load of 1024xf32 with 16 bytes at a time, the most there are",
    ]


def test_a_stride_that_is_known_to_be_nothing() -> None:
    made = compiled(columns, "cuda:80", "*fp32 *fp32 i32", {"ROWS": 32, "COLUMNS": 32}, "x out s")
    assert told(made, "access width") == [
        "k.py:5:5: access width: store of 32x32xf32 with 16 bytes at a time, the most there are",
        "k.py:5:37: access width: load of 32x32xf32 with 4 bytes at a time of 16: "
        "neighbours along dimension 1 are `s` elements apart, which is not known to be 1",
    ]


def test_a_stride_that_is_a_number() -> None:
    made = compiled(every, "cuda:80", "*fp32 *fp32", {"STEP": 3, "START": 0, "BLOCK": 1024}, "x out")
    assert told(made, "access width")[1] == (
        "k.py:4:23: access width: load of 1024xf32 with 4 bytes at a time of 16: "
        "neighbours in the tile are 3 elements apart"
    )


def test_addresses_that_are_loaded() -> None:
    made = compiled(gathered, "cuda:80", "*fp32 *i32 *fp32", {"BLOCK": 1024}, "x index out")
    assert told(made, "access width")[-1] == (
        "k.py:5:23: access width: load of 1024xf32 with 4 bytes at a time of 16: `at`, a value loaded from memory, "
        "does not step by 1 between neighbours in the tile, as far as is known (line 4)"
    )


def test_more_threads_than_elements() -> None:
    made = compiled(copy, "cuda:80", "*fp32 *fp32 i32", {"BLOCK": 2}, "x out n")
    assert told(made, "access width")[1] == (
        "k.py:4:23: access width: load of 2xf32 with 4 bytes at a time of 16: the layout gives a thread 1 element in "
        "a row, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
    )
