"""What variables are after their loops, and which of them a loop carries: Python's values, on every target.

Each kernel stores what Python's own run of it would; where Python has no value, a zero, and with `debug=True` an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import gluon
from weft.gluon import language as gl

TARGETS = ["cpu", "sim:cuda:80", "sim:cuda:90"]


@weft.jit
def last_values(o, n):
    for i in range(n):
        last = i * 2
    tl.store(o, last)
    tl.store(o + 1, i)


@weft.jit
def value_before(o, n):
    i = tl.program_id(0) + 42
    for i in range(n):
        pass
    tl.store(o, i)


@weft.jit
def wider_than_before(o, n):
    i = 42
    for i in range(tl.cast(n, tl.int64)):
        pass
    tl.store(o, i)


@weft.jit
def narrower_than_before(o, n):
    i = tl.cast(n, tl.int64) << 31
    for i in range(n - 1):
        pass
    tl.store(o, i)


@weft.jit
def of_another_type_before(o, n):
    i = tl.arange(0, 4)
    for i in range(n):
        pass
    tl.store(o, i)


@weft.jit
def left_by_an_earlier_turn(o, n):
    for i in range(3):
        for j in range(n - i):
            last = j + 10 * i
        tl.store(o + i, last)
    tl.store(o + 3, j)


@weft.jit
def inside_an_if(o, n):
    s = 0
    for i in range(3):
        if i != 1:
            for j in range(n):
                s += j
            tl.store(o + i, j + s)
    tl.store(o + 5, s)


@weft.jit
def set_by_an_if_before(o, n):
    if n > 5:
        i = 33
    for i in range(n - 6):
        pass
    tl.store(o, i)


@weft.jit
def reassigned(o, n):
    for i in range(n):
        i = i * 2 + 1
        tl.store(o + 1 + i // 2, i)
    tl.store(o, i)


@weft.jit
def of_two_types_in_a_turn(o, n):
    t = tl.arange(0, 4)
    tl.store(o + t, t)
    for i in range(n):
        t = i * 1.5
        tl.store(o + 4 + i, t.to(tl.int32))
        t = i + 3
        tl.store(o + 7, t)


@weft.jit
def a_tile(o, n):
    for i in range(n):
        t = tl.arange(0, 8) + i
    tl.store(o + tl.arange(0, 8), t)


@weft.jit
def tuples(o, n):
    for i in range(n):
        a, b = i, i * 2
        t = (a, b)
    tl.store(o, a)
    tl.store(o + 1, t[1])


@weft.jit
def in_a_while(o, n):
    t = 0
    while t < n:
        y = t * 3
        t += 1
    tl.store(o, y)


@weft.jit
def argument(o, n):
    t = 0
    while t < 3:
        n += t
        t += 1
    tl.store(o, n)


@weft.jit
def grown(k, n):
    for i in range(n):
        k += i
    return k


@weft.jit
def argument_of_a_call(o, n):
    tl.store(o, grown(1, n))
    tl.store(o + 1, grown(n, 4))


@weft.jit
def argument_as_the_variable(o, n):
    m = n
    for i in range(2):
        for n in range(m):
            tl.store(o + n, i + n)
    tl.store(o + 7, n)


@weft.jit
def tuple_of_arguments(o, n, t):
    for i in range(n):
        t = (t[0] + 1, t[1] + i)
    tl.store(o, t[0])
    tl.store(o + 1, t[1])


def test_tuples_of_specialised_arguments() -> None:
    for target in TARGETS:
        for pair in ((1, 1), (5, 1), (5, 6)):
            out = np.full(8, -7, np.int32)
            with weft.target(target):
                tuple_of_arguments[(1,)](out, 3, pair)
            assert out.tolist() == python(pair[0] + 3, pair[1] + 3)


@weft.jit
def none_set_first(o, n, p):
    for i in range(n):
        p = o + i
        tl.store(p, i)


def test_none_is_a_name_like_any_other_where_it_is_set_first() -> None:
    out = np.full(8, -7, np.int32)
    none_set_first[(1,)](out, 2, None)
    assert out.tolist() == python(0, 1)


@weft.jit
def different_counters(o, n):
    if n > 2:
        for i in tl.static_range(3):
            tl.store(o + i, i)
    else:
        for i in tl.static_range(2):
            tl.store(o + i, i + 5)
    tl.store(o + 7, i)


def test_counters_of_unrolled_loops_in_two_branches() -> None:
    for n, expected in ((3, python(0, 1, 2, *[None] * 4, 2)), (0, python(5, 6, *[None] * 5, 1))):
        out = np.full(8, -7, np.int32)
        different_counters[(1,)](out, n)
        assert out.tolist() == expected


@gluon.jit
def a_tile_with_a_layout(x, o, n, ONE: gl.constexpr, OTHER: gl.constexpr):
    at = gl.arange(0, 128, ONE)
    for i in range(n):
        t = gl.convert_layout(gl.load(x + at), OTHER)
        t = gl.convert_layout(t * 2, ONE)
        last = t + i
    gl.store(o + at, last)


def test_gluon_takes_the_same_frontend() -> None:
    one, other = gl.BlockedLayout([1], [32], [4], [0]), gl.BlockedLayout([2], [32], [4], [0])
    x, out = np.arange(128, dtype=np.float32), np.ones(128, np.float32)
    with weft.target("sim:cuda:90"):
        a_tile_with_a_layout[(1,)](x, out, 3, one, other)
        np.testing.assert_array_equal(out, 2 * x + 2)
        a_tile_with_a_layout[(1,)](x, out, 0, one, other)
        np.testing.assert_array_equal(out, 0)
        with pytest.raises(weft.DeviceAssertionError, match="`last` has no value"):
            a_tile_with_a_layout[(1,)](x, out, 0, one, other, debug=True)


@weft.jit
def a_pointer(o, n):
    for i in range(n):
        p = o + i
    if n > 0:
        tl.store(p, 9)


@weft.jit
def of_another_type_in_the_turn_before(o, n):
    for i in range(2):
        for a in range(n - 3 * i):
            pass
        tl.store(o + i, a)
        a = i * 0.5 + 1.5


@weft.jit
def of_another_type_in_the_last_turn(o, n):
    for i in range(n):
        for a in range(i):
            pass
        if i > 0:
            tl.store(o + i, a)
        a = i * 0.5 + 1.5
    tl.store(o + 7, (a * 2).to(tl.int32))


@weft.jit
def none_before_an_inner_loop(o, n):
    a = n + 5
    for i in range(2):
        tl.store(o + i, i)
        a = None
        for a in range(n):
            pass
    tl.store(o + 7, a)


@weft.jit
def narrower_in_unrolled_turns(o, n):
    for j in tl.static_range(3):
        for b in range(2):
            for a in range(tl.cast(0, tl.int64), n):
                pass
            a = a.to(tl.int32) + j
        tl.store(o + j, a + b)


@weft.jit
def of_another_type_in_the_last_turn_of_a_while(o, n):
    if n < 0:
        a = tl.arange(0, 8)
    i = 0
    while i < n:
        a = i * 2
        for a in range(a, a + n - 1):
            pass
        tl.store(o + i, a)
        a = (a, i * 0.5)
        i += 1
    tl.store(o + 7, (a[0] + a[1]).to(tl.int32))


@weft.jit
def wider_in_the_turn_before(o, n):
    for i in range(2):
        for a in range(n - 3 * i):
            pass
        tl.store(o + i, a)
        a = tl.cast(i + 7, tl.int64)


@weft.jit
def of_another_type_in_one_branch(o, n):
    for i in range(3):
        if n > 2:
            for c in range(n):
                pass
            tl.store(o + i, c)
        elif n > 1:
            c = (i, i)
            tl.store(o + i, c[0] + c[1])
        if i > 1:
            c = 0.5
        else:
            c = (i, n)


@weft.jit
def of_another_type_on_one_path_before(o, n, FLAG: tl.constexpr = True):
    if n > 2:
        t = 0.5
        tl.store(o + 7, (t * 8).to(tl.int32))
    for i in range(n):
        if FLAG:
            t = i
        if FLAG:
            tl.store(o + i, t)


@weft.jit
def narrower_on_one_path_before(o, n):
    if n > 2:
        t = n
    for _ in range(n - 3):
        t = tl.cast(n, tl.int64) * 2
    tl.store(o, t)


@weft.jit
def set_in_a_condition(o, n):
    y = 0.5
    tl.store(o + 7, (y * 8).to(tl.int32))
    for i in range(n):
        if (y := i * 2) > 1:
            tl.store(o + i, y)


@weft.jit
def read_where_python_does_not(o, n):
    for i in range(n - 3):
        t = i
    if n > 3 and (n > 5 or t > 0):
        tl.store(o, 1)
    if n <= 3 or t < 1:
        tl.store(o + 1, 1)
    k = 0
    while k < n - 3 and k <= t:
        k += 1
    tl.store(o + 2, k)
    if not (n > 100 and positive(n, t)):
        tl.store(o + 3, 1)


@weft.jit
def positive(n, t):
    for i in range(n):
        u = i
    return t > 0 and u > 0


def python(*values: int | None) -> list[int]:
    """Eight numbers, of which the launch has not changed those that are None or not given."""
    return [-7 if v is None else v for v in values] + [-7] * (8 - len(values))


CASES: list[tuple[Any, int, list[int], bool]] = [
    (last_values, 0, python(0, 0), True),
    (last_values, 1, python(0, 0), False),
    (last_values, 3, python(4, 2), False),
    (value_before, 0, python(42), False),
    (value_before, 5, python(4), False),
    (wider_than_before, 0, python(42), False),
    (wider_than_before, 2, python(1), False),
    (narrower_than_before, 0, python(0), False),
    (narrower_than_before, -1, python(-(2**31)), False),
    (narrower_than_before, -2, python(0), True),
    (narrower_than_before, 3, python(1), False),
    (of_another_type_before, 0, python(0), True),
    (of_another_type_before, 2, python(1), False),
    (left_by_an_earlier_turn, 2, python(1, 10, 10, 0), False),
    (left_by_an_earlier_turn, 0, python(0, 0, 0, 0), True),
    (inside_an_if, 3, python(5, None, 8, None, None, 6), False),
    (inside_an_if, 0, python(0, None, 0, None, None, 0), True),
    (set_by_an_if_before, 6, python(33), False),
    (set_by_an_if_before, 8, python(1), False),
    (set_by_an_if_before, 5, python(0), True),
    (reassigned, 3, python(5, 1, 3, 5), False),
    (of_two_types_in_a_turn, 3, python(0, 1, 2, 3, 0, 1, 3, 5), False),
    (a_tile, 2, [1, 2, 3, 4, 5, 6, 7, 8], False),
    (a_tile, 0, [0] * 8, True),
    (tuples, 3, python(2, 4), False),
    (in_a_while, 0, python(0), True),
    (in_a_while, 2, python(3), False),
    (argument, 1, python(4), False),
    (argument, 2, python(5), False),
    (argument_of_a_call, 1, python(1, 7), False),
    (argument_of_a_call, 3, python(4, 9), False),
    (argument_as_the_variable, 1, python(1, None, None, None, None, None, None, 0), False),
    (argument_as_the_variable, 3, python(1, 2, 3, None, None, None, None, 2), False),
    (of_another_type_in_the_turn_before, 6, python(5, 2), False),
    (of_another_type_in_the_turn_before, 3, python(2, 0), True),
    (none_before_an_inner_loop, 3, python(0, 1, None, None, None, None, None, 2), False),
    (none_before_an_inner_loop, 0, python(0, 1, None, None, None, None, None, 0), True),
    (narrower_in_unrolled_turns, 3, python(3, 4, 5), False),
    (of_another_type_in_the_last_turn, 3, python(None, 0, 1, None, None, None, None, 5), False),
    (of_another_type_in_the_last_turn, 0, python(None, None, None, None, None, None, None, 0), True),
    (of_another_type_in_the_last_turn_of_a_while, 3, python(1, 3, 5, None, None, None, None, 6), False),
    (of_another_type_in_the_last_turn_of_a_while, 0, python(None, None, None, None, None, None, None, 0), True),
    (wider_in_the_turn_before, 3, python(2, 7), False),
    (wider_in_the_turn_before, 0, python(0, 7), True),
    (of_another_type_in_one_branch, 4, python(3, 3, 3), False),
    (of_another_type_in_one_branch, 2, python(0, 2, 4), False),
    (of_another_type_on_one_path_before, 3, python(0, 1, 2, None, None, None, None, 4), False),
    (of_another_type_on_one_path_before, 2, python(0, 1), False),
    (narrower_on_one_path_before, 3, python(3), False),
    (narrower_on_one_path_before, 5, python(10), False),
    (set_in_a_condition, 3, python(None, 2, 4, None, None, None, None, 4), False),
    (read_where_python_does_not, 0, python(None, 1, 0, 1), False),
    (read_where_python_does_not, 4, python(None, 1, 1, 1), False),
    (read_where_python_does_not, 7, python(1, None, 4, 1), False),
    (a_pointer, 3, python(None, None, 9), False),
    (a_pointer, 0, python(), False),
]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize(("kernel", "n", "expected", "unset"), CASES, ids=lambda v: getattr(v, "__name__", None))
@pytest.mark.thinned(4)
def test_value_after_a_loop(kernel: Any, n: int, expected: list[int], unset: bool, debug: bool) -> None:
    for target in TARGETS:
        out = np.full(8, -7, np.int32)
        with weft.target(target):
            if unset and debug:
                with pytest.raises(weft.DeviceAssertionError, match=r"has no value: it is .*, which did not run"):
                    kernel[(1,)](out, n, debug=True)
            else:
                kernel[(1,)](out, n, debug=debug)
                assert out.tolist() == expected, target


def test_the_error_of_a_variable_without_a_value() -> None:
    line = last_values.fn.__code__.co_firstlineno
    with pytest.raises(weft.DeviceAssertionError) as caught:
        last_values[(1,)](np.zeros(8, np.int32), 0, debug=True)
    assert str(caught.value) == (
        f"{__file__}:{line + 4}:17: error: device assertion failed: `last` has no value: it is set only in the loop on "
        f"line {line + 2}, which did not run\n"
        f"{line + 4:5} |     tl.store(o, last)\n"
        "      |                 ^\n"
        "note: in program (0, 0, 0) of kernel `last_values`"
    )


def carried(kernel: Callable[..., Any], *signature: str) -> str:
    """What the outermost loop of a kernel carries, as its tile IR says."""
    from weft.frontend import ast_to_ttir
    from weft.ir import print_module

    text = print_module(ast_to_ttir(kernel, dict(zip(kernel.arg_names, signature, strict=True))))  # type: ignore
    return next(line for line in text.splitlines() if "scf.for" in line)


@weft.jit
def temporaries(o, n):
    a = tl.arange(0, 8)
    b = a + 1
    s = 0
    for i in range(n):
        a = tl.load(o + i)
        b = a * 2
        if b > 3:
            a = b
            c = a
        else:
            c = 2
        for k in range(c):
            b += k
        s += b
    tl.store(o, s)


def test_only_what_is_read_before_it_is_set_is_carried() -> None:
    assert re.search(r"iter_args\(%s\w* = %s\w*\) -> \(i32\)", carried(temporaries, "*i32", "i32"))
