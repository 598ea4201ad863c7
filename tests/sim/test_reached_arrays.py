"""Arrays that are no arguments: a kernel finds their addresses in memory."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl

TARGET = "sim:cuda:90"


@weft.jit
def sums(table, lengths, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows of their own, each at an address of a table, and the sum of each."""
    row = tl.program_id(0)
    start = tl.load(table + row).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    value = tl.load(start + i, mask=i < tl.load(lengths + row), other=0.0)
    tl.store(start + i, value + 1, mask=i < tl.load(lengths + row))
    tl.store(out + row, tl.sum(value, 0))


def given(lengths: list[int]) -> tuple[list[np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    rows = [np.arange(n, dtype=np.float32) for n in lengths]
    table = np.array([row.ctypes.data for row in rows], np.int64)
    return rows, table, np.array(lengths, np.int32), np.zeros(len(rows), np.float32)


@pytest.mark.parametrize("order", ["backward", "all"])
def test_rows_by_a_table_of_pointers(order: str) -> None:
    rows, table, lengths, out = given([30, 7, 64])
    with weft.sim.options(arrays=rows, order=order):
        sums[(3,)](table, lengths, out, BLOCK=64, target=TARGET)
    assert out.tolist() == [n * (n - 1) / 2 for n in (30, 7, 64)]
    assert all((row == np.arange(1, len(row) + 1)).all() for row in rows)


def test_what_lies_behind_one_is_outside() -> None:
    rows, table, lengths, out = given([30, 64])
    lengths[0] = 31
    behind = r"right after the end of `arrays\[0\]`"
    with weft.sim.options(arrays=rows), pytest.raises(weft.sim.OutOfBoundsError, match=behind):
        sums[(2,)](table, lengths, out, BLOCK=64, target=TARGET)


def test_an_address_that_nobody_names_is_told_how() -> None:
    _, table, lengths, out = given([30])
    with pytest.raises(weft.sim.OutOfBoundsError, match=r"options\(arrays="):
        sums[(1,)](table, lengths, out, BLOCK=64, target=TARGET)
