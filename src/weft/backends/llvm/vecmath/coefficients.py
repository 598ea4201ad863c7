"""The coefficients of the approximations, by the names that `tools/vecmath_coefficients.py` gives their fits.

>>> fitted("cos.float")
(0.04166664555668831, -0.00138873013202101, 2.443066841806285e-05)
"""

from __future__ import annotations

from functools import cache

from weft.base import data_lines


def read(file: str) -> dict[str, list[str]]:
    """The fields of each line of a text file of this package, by the first of them."""
    return {name: fields for name, *fields in map(str.split, data_lines(__name__, file))}


@cache
def _lists() -> dict[str, tuple[float, ...]]:
    return {name: tuple(map(float, fields)) for name, fields in read("coefficients.txt").items()}


def fitted(name: str) -> tuple[float, ...]:
    """The list of a fit, c0 first."""
    return _lists()[name]
