"""Evaluating the tables of polynomials on small intervals (tables.txt).

`piecewise("j0", x)` finds the interval of each lane, gathers its row of coefficients and applies it. A row that
begins with a number is for a function with a zero there: the polynomial is multiplied by x - zero, which keeps the
result precise near the zero.
"""

from __future__ import annotations

import base64
import struct
from functools import cache, partial

from .coefficients import read
from .expr import X, at_least, at_most, horner, table, where

_tables = cache(partial(read, "tables.txt"))


@cache
def _rows(name: str) -> tuple[float, float, int, tuple[float, ...]]:
    start, step, width, _error, text = _tables()[name]
    data = base64.b85decode(text)
    return float(start), float(step), int(width), struct.unpack(f"<{len(data) // 8}d", data)


def piecewise(name: str, x: X) -> X:
    """The tabulated function at x (double); beyond its ends, the first and last polynomials' continuation."""
    start, step, width, values = _rows(name)
    count = len(values) // width
    if count == 1:
        return horner(x - (start + step / 2), values[2:])
    bounded = at_most(at_least(x, start), start + step * (count - 0.5))
    bounded = where(bounded.isnan(), start, bounded)
    place = ((bounded - start) * (1 / step)).to_int("i64")
    r = x - (place.to_float("double") * step + (start + step / 2))
    row = place * width
    polynomial = horner(r, [table(name, "double", values, row + j) for j in range(2, width)])
    if all(v != v for v in values[::width]):
        return polynomial
    zero, zero_low = table(name, "double", values, row), table(name, "double", values, row + 1)
    return polynomial * where(zero.isnan(), 1.0, (x - zero) - zero_low)
