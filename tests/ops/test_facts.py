"""What rows say of themselves, against their meaning: every pair of integers of eight bits, corners of floats."""

from __future__ import annotations

import numpy as np
import pytest

from weft.ops import ELEMENTS
from weft.ops.dtypes import DTYPES
from weft.ops.integers import is_wrong
from weft.ops.rounding import Array
from weft.ops.row import FLOATS, INTEGERS, Row
from weft.ops.table import ROWS, compute

BYTES = np.arange(-128, 128).astype(np.int8)
X, Y = (v.reshape(-1) for v in np.meshgrid(BYTES, BYTES, indexing="ij"))
CORNERS = [0.0, -0.0, 1.0, -1.5, 3.25, 1e-30, -1e30, np.inf, -np.inf, np.nan]
OF_TWO_INTEGERS = [row for row in ROWS.values() if row.kind == INTEGERS and row.arity == 2]
OF_TWO = [row for row in ROWS.values() if row.kind in (INTEGERS, FLOATS) and row.arity == 2]
ids = lambda row: row.name


def _of_bytes(row: Row, *operands: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(compute(row.name, operands, "i8", {}))


def _pairs(row: Row) -> tuple[str, Array, Array]:
    """Operands to try."""
    if row.kind == INTEGERS:
        return "i8", X, Y
    a, b = (np.array(v, np.float32).reshape(-1) for v in np.meshgrid(CORNERS, CORNERS, indexing="ij"))
    return "f32", a, b


def _same(a: Array, b: Array) -> np.bool_:
    return np.all((a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")) | ((a != a) & (b != b)))


@pytest.mark.parametrize("row", OF_TWO_INTEGERS, ids=ids)
def test_what_numbers_come_to(row: Row) -> None:
    for number, fact in ((0, row.zero), (1, row.one), (-1, row.ones)):
        known = np.full_like(BYTES, number)
        for side, what in enumerate(fact.split("|") if fact else ()):
            got = _of_bytes(row, *((BYTES, known), (known, BYTES))[side])
            if what:
                np.testing.assert_array_equal(got, BYTES if what == "x" else np.full_like(BYTES, int(what)))
    if row.same:
        np.testing.assert_array_equal(_of_bytes(row, BYTES, BYTES), BYTES if row.same == "x" else np.zeros_like(BYTES))


@pytest.mark.parametrize("row", OF_TWO, ids=ids)
def test_operands_that_may_be_exchanged(row: Row) -> None:
    elem, a, b = _pairs(row)
    with np.errstate(all="ignore"):
        there, back = compute(row.name, (a, b), elem, {}), compute(row.name, (b, a), elem, {})
    if row.commutes:
        assert _same(there, back)
    elif row.neutral is None:  # one that keeps all but bits of zeros or of NaN has a neutral number
        assert not _same(there, back)


@pytest.mark.parametrize("row", [row for row in OF_TWO if row.neutral is not None], ids=ids)
def test_what_reductions_begin_at(row: Row) -> None:
    elem, a, _ = _pairs(row)
    assert row.neutral is not None
    start = np.full_like(a, row.neutral(ELEMENTS[elem]))
    with np.errstate(all="ignore"):
        assert _same(compute(row.name, (start, a), elem, {}), a)


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.arity == 1 and row.meaning], ids=ids)
def test_zero_stays_zero(row: Row) -> None:
    elems = {"int": ["i32"], "float": ["f32"], "any": ["f32"], "pointer": ["i64"]}[row.kind.source]
    for elem in elems:
        result = {"float": "f64", "int": "i64"}.get(row.kind.result, elem)
        result = elem if row.kind.how in ("same", "bits") or "pointer" in row.kind else result
        with np.errstate(all="ignore"):
            got = compute(row.name, [np.zeros(1, DTYPES[elem])], result, {})
        assert not row.keeps_zero or got[0] == 0


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.of_integers is not None], ids=ids)
def test_numbers_without_an_end_wrap_to_the_same(row: Row) -> None:
    """Python's integers, which folding has, and arrays of 64 bits, which the analyses have."""
    assert row.of_integers is not None
    read = (lambda v: v & 255) if row.is_unsigned else (lambda v: v)
    want = _of_bytes(row, X, Y)
    wide = row.of_integers(read(X.astype(np.int64)), read(Y.astype(np.int64)), 8)
    np.testing.assert_array_equal(wide.astype(np.int8), want)
    for x, y, w in list(zip(X.tolist(), Y.tolist(), want.tolist(), strict=True))[::37]:
        assert (row.of_integers(read(x), read(y), 8) + 128) % 256 - 128 == w, (x, y)


def test_what_debug_builds_report() -> None:
    assert is_wrong(ROWS["arith.divsi"], 5, 0, 32) and is_wrong(ROWS["arith.remsi"], -128, -1, 8)
    assert not is_wrong(ROWS["arith.divui"], 5, 255, 8) and not is_wrong(ROWS["arith.divsi"], 5, -1, 8)
    assert is_wrong(ROWS["arith.shli"], 1, 8, 8) and is_wrong(ROWS["arith.shli"], 1, -1, 8)
    assert not is_wrong(ROWS["arith.addi"], 127, 127, 8)
