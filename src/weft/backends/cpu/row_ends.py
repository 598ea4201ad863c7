"""Vectors that go on in the next row: an index is divided by the length of a row that no number of vectors fills.

    i            297 298 299 300
    i // 300       0   0   0   1      split: 0 in three lanes, 1 in the last
    i % 300      297 298 299   0      split: 297 + lane in three lanes, lane - 3 in the last

Index arithmetic on either side stays uniform or affine (`Split` in forms.py), and so an access to memory is two of
whole vectors, each under a mask, where it would go lane by lane otherwise. All that an index is divided by has to be a
multiple of one number, the length of the shortest rows; quotients and remainders by others follow from the number of
such a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from weft.backends.cpu.coords import Coords
from weft.backends.cpu.forms import Affine, Form, Split, Uniform, cast_scalar
from weft.backends.cpu.program import Value
from weft.backends.cpu.questions import QUOTIENTS, REMAINDERS, constant_int
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import const, const_lanes, vec


def row_lengths(visited: Iterable[tuple[Value, Coords]]) -> dict[Value, int]:
    """The greatest number of which all are multiples that an index is divided by."""
    rows: dict[Value, int] = {}
    for value, _ in visited:
        op = value.op
        if op is not None and op.name in (*REMAINDERS, *QUOTIENTS):
            divisor = constant_int(op.args[1]) or 0
            rows[op.args[0]] = gcd(rows.get(op.args[0], 0), divisor) if divisor > 0 else 1
    return rows


def row_and_place(f: Function, index: Affine, length: int, lanes: int) -> tuple[Split, Split]:
    """The row of each lane of an index that is not negative, and the place in it."""
    type, numbers = index.base.type, index.constant_lanes
    assert numbers is not None and max(numbers) < length
    row = f.bin("udiv", index.base, const(type, length))
    place = f.sub(index.base, f.mul(row, const(type, length)))
    left = f.sub(const(type, length), place)
    lane = vec("i32" if lanes <= 16 else "i8", lanes)
    here = cast_scalar(f, "trunc", f.intrinsic("umin", type, [left, const(type, lanes)]), lane.scalar)
    in_first = f.icmp("ugt", f.splat(here, lanes), const_lanes(lane, numbers))
    crosses = f.cast("zext", f.icmp("ule", left, const(type, max(numbers))), type)
    rows = Split(in_first, Uniform(row), Uniform(f.add(row, crosses)))
    return rows, Split(in_first, Affine(place, index.terms), Affine(f.sub(const(type, 0), left), index.terms))


def quotient(f: Function, row: Split, rows: int) -> Split:
    """An index divided by the length of some rows."""

    def side(number: Form) -> Form:
        assert isinstance(number, Uniform)
        return Uniform(f.bin("udiv", number.value, const(number.value.type, rows)))

    return row if rows == 1 else row.map(side)


def remainder(f: Function, row: Split, place: Split, rows: int, length: int) -> Split:
    """The remainder of an index divided by the length of some rows."""

    def side(number: Form, within: Form) -> Form:
        assert isinstance(number, Uniform) and isinstance(within, Affine)
        type = within.base.type
        before = f.mul(f.bin("urem", number.value, const(type, rows)), const(type, length))
        return Affine(f.add(before, within.base), within.terms)

    if rows == 1:
        return place
    return Split(row.in_first, side(row.first, place.first), side(row.second, place.second))


def is_scalar(form: Form) -> bool:
    """Whether a form is one scalar, or one on either side."""
    return isinstance(form, Uniform) or (isinstance(form, Split) and is_scalar(form.first) and is_scalar(form.second))
