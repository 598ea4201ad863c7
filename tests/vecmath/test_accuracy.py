"""Every function's error stays within what docs/reference/math.md states: in ranges, on random bits, on specials."""

from __future__ import annotations

import numpy as np
import pytest

from vecmath.cases import CASES, PRECISE_LONG_DOUBLE, Case, reference, samples, special_points
from vecmath.jit import NUMPY, Compiled, bit_patterns, compiled, specials, ulps

POINTS = [(case, elem) for case in CASES for elem in case.elems]
LANES = {"float": (0, 2, 4, 8, 32), "double": (0, 2, 4, 16, 32)}


def needs_mpmath(case: Case, elem: str) -> bool:
    return not (case.wide and (elem == "float" or PRECISE_LONG_DOUBLE)) and not (elem == "float" and case.double)


def worst(case: Case, elem: str, args: list[np.ndarray], function: Compiled) -> tuple[float, str]:
    wanted, got = reference(case, elem, args), function(*args)
    error = ulps(got, wanted, elem)
    if case.modulus is not None and elem == "double":
        error = np.abs((got - wanted).astype(np.float64)) / case.modulus(*args) / 2.0**-52
    at = int(np.argmax(error))
    return float(
        error[at]
    ), f"{case.name}({', '.join(repr(a[at]) for a in args)}) = {got[at]!r}, not {NUMPY[elem](wanted[at])!r}"


def check(case: Case, elem: str, args: list[np.ndarray], function: Compiled) -> None:
    error, where = worst(case, elem, args, function)
    stated = case.stated[elem == "double"]
    assert error <= max(stated, 0.5), f"{error} ulp, {stated} stated: {where}"


@pytest.mark.parametrize(("case", "elem"), POINTS, ids=[f"{c.name}-{e}" for c, e in POINTS])
@pytest.mark.thinned(3)
def test_error(case: Case, elem: str) -> None:
    if needs_mpmath(case, elem):
        pytest.importorskip("mpmath")
    slow = needs_mpmath(case, elem)
    function = compiled(case.name, elem)
    check(case, elem, samples(case, elem, 40 if slow else 20000), function)
    if case.patterns:
        count = 60 if slow else 20000
        args = [bit_patterns(elem, count, seed) for seed in range(len(case.ranges))]
        with np.errstate(all="ignore"):
            args = [
                np.nan_to_num(a).astype(np.int64).astype(np.int32) if i in case.ints else a for i, a in enumerate(args)
            ]
        check(case, elem, args, function)
        check(case, elem, special_points(case, elem, specials(elem)), function)


@pytest.mark.parametrize(
    "name", ["exp", "exp2", "exp10", "sinh", "cosh", "tanh", "erf", "rsqrt", "ldexp", "log", "sin"]
)
@pytest.mark.parametrize("elem", ["float", "double"])
@pytest.mark.thinned(3)
def test_without_avx512(name: str, elem: str) -> None:
    """The forms for machines that have no instruction for scaling and looking up."""
    case = next(c for c in CASES if c.name == name)
    if needs_mpmath(case, elem):
        pytest.importorskip("mpmath")
    function = Compiled(name, elem, 16 if elem == "float" else 8, wide_scale=False)
    check(case, elem, samples(case, elem, 40 if needs_mpmath(case, elem) else 5000), function)
    if case.patterns:
        check(case, elem, special_points(case, elem, specials(elem)), function)


@pytest.mark.parametrize(("case", "elem"), POINTS, ids=[f"{c.name}-{e}" for c, e in POINTS])
@pytest.mark.thinned(3)
def test_other_widths(case: Case, elem: str) -> None:
    """A scalar, and one other number of lanes for each function, taken in turn."""
    args = samples(case, elem, 40)
    expected = compiled(case.name, elem)(*args)
    width = sum(map(ord, case.name)) % 4 + 1
    for lanes in (0, LANES[elem][width]):
        got = Compiled(case.name, elem, lanes)(*args)
        size = np.maximum(np.abs(expected), np.finfo(NUMPY[elem]).tiny)
        with np.errstate(all="ignore"):
            near = np.abs(got - expected) <= 4 * np.spacing(size)
        assert np.all(near | (got == expected) | (np.isnan(got) & np.isnan(expected))), f"{case.name}, {lanes} lanes"
