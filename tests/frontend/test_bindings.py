"""What names are bound to: `:=`, declared constexprs, tuples of targets, comprehensions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import CompilationError, UnsupportedLanguageConstruct


@weft.jit
def named(out: Any, n: Any) -> None:
    if (twice := n * 2) > 10:
        tl.store(out, twice + 1)
    else:
        tl.store(out, twice)
    tl.store(out + 1, twice)


@pytest.mark.parametrize("n", [3, 9])
def test_a_named_expression(n: int) -> None:
    out = np.zeros(2, np.int32)
    named[(1,)](out, n)
    assert out.tolist() == [2 * n + (2 * n > 10), 2 * n]


@weft.jit
def declared(out: Any) -> None:
    size: tl.constexpr
    size, start = 8, 3
    width: tl.constexpr
    (width) = size * 2
    if (width := width) == 16:
        tl.store(out + tl.arange(0, size), tl.arange(0, width // 2) + start)


def test_what_is_declared_constexpr_stays_known() -> None:
    out = np.zeros(8, np.int32)
    declared[(1,)](out)
    assert out.tolist() == list(range(3, 11))


@weft.jit
def comprehension(out: Any) -> None:
    sums: tl.constexpr = [a + b * c for a, (b, c) in ((1, (2, 3)), (4, (5, 6))) if b > 1]
    for i in tl.static_range(2):
        tl.store(out + i, sums[i])


def test_a_comprehension_over_tuples() -> None:
    out = np.zeros(2, np.int32)
    comprehension[(1,)](out)
    assert out.tolist() == [7, 34]


@weft.jit
def too_many() -> None:
    a, b = (1, 2, 3)  # noqa: F841


@weft.jit
def too_few() -> None:
    a, b, c = (1, 2)  # noqa: F841


@weft.jit
def inner() -> None:
    (a, b), c = ((1, 2, 3), 4)  # noqa: F841


@weft.jit
def in_comprehension() -> None:
    sums = [a + b for a, b in ((1, 2, 3),)]  # noqa: F841


@weft.jit
def no_tuple() -> None:
    sums = [a + b for a, b in (1, 2)]  # noqa: F841


@weft.jit
def starred() -> None:
    a, *rest = (1, 2, 3)  # noqa: F841


@weft.jit
def in_a_condition(n: Any) -> None:
    while (n := n - 1) > 0:
        tl.device_print("n", n)


@weft.jit
def on_one_side(n: Any) -> None:
    x = (m := n) if n > 0 else n  # noqa: F841


@weft.jit
def after_and(n: Any) -> None:
    if n > 5 and (m := n + 1) > 6:
        tl.device_print("m", m)


@weft.jit
def after_or(n: Any) -> None:
    if n > 5 or n < 2 or (m := n + 1) > 6:  # noqa: F841
        tl.device_print("n", n)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (too_many, r"too many values to unpack \(expected 2, got 3\)"),
        (too_few, r"not enough values to unpack \(expected 3, got 2\)"),
        (inner, r"too many values to unpack \(expected 2, got 3\)"),
        (in_comprehension, r"too many values to unpack \(expected 2, got 3\)"),
        (no_tuple, "cannot unpack non-iterable value"),
        (starred, "starred assignment targets are not supported"),
    ],
)
def test_targets_that_do_not_fit(kernel: Any, message: str) -> None:
    with pytest.raises(CompilationError, match=message):
        kernel[(1,)]()


@pytest.mark.parametrize("kernel", [in_a_condition, on_one_side, after_and, after_or])
def test_where_a_name_would_have_no_value(kernel: Any) -> None:
    with pytest.raises(UnsupportedLanguageConstruct, match="`:=` cannot be used in"):
        kernel[(1,)](4)


@weft.jit
def weigh(a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e


@weft.jit
def unpacked(out: Any, first: Any, second: Any) -> None:
    tl.store(out, weigh(*first, *second, 5))
    tl.store(out + 1, weigh(*first, 3, *second))


def test_several_tuples_among_the_arguments() -> None:
    out = np.zeros(2, np.int32)
    unpacked[(1,)](out, (1, 2), (3, 4))
    assert out.tolist() == [54321, 43321]
