"""Launches that are wrong are told alike on the CPU and in the simulator."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchError, LaunchTypeError


@weft.jit
def ones(x, n):
    tl.store(x + tl.arange(0, 4), n * 1.0)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
@pytest.mark.parametrize(
    ("grid", "text"),
    [
        ((1, 70000), "grid size 70000 on axis 1 exceeds 65535, the most on that axis"),
        ((1 << 31,), "grid size 2147483648 on axis 0 exceeds 2147483647, the most on that axis"),
        ((-1,), "grid size -1 on axis 0 is negative"),
        ((1.5,), "grid sizes are integers, got 1.5 of type float on axis 0"),
        ((1, 2, 3, 4), "a grid has 1 to 3 dimensions, got 4: (1, 2, 3, 4)"),
        (None, "a grid is a tuple of 1 to 3 integers or a function that returns one, got a NoneType"),
        (lambda: (1,), "the grid is a function that cannot be called with the arguments of the launch"),
    ],
)
def test_a_grid_is_checked_as_on_the_machine(target: str, grid: Any, text: str) -> None:
    with pytest.raises((LaunchError, LaunchTypeError)) as caught:
        ones[grid](np.zeros(4, np.float32), 1.0, target=target)
    assert caught.value.message.startswith(text)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_an_argument_that_is_given_twice(target: str) -> None:
    with pytest.raises(TypeError, match=r"^ones\(\) got multiple values for argument 'n'$"):
        ones[(1,)](np.zeros(4, np.float32), 1.0, n=2.0, target=target)


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_an_array_that_is_read_only(target: str) -> None:
    x = np.zeros(4, np.float32)
    x.flags.writeable = False
    with pytest.raises(LaunchError) as caught:
        ones[(1,)](x, 1.0, target=target)
    assert caught.value.argument == "x"
    assert str(caught.value) == (
        "argument `x` is read-only, and the kernel stores to it\n"
        "hint: pass a writeable copy, np.array(x), x.copy(), or set x.flags.writeable = True where the memory is yours"
    )


@weft.jit
def added(x, y):
    i = tl.arange(0, 4)
    tl.store(x + i, tl.load(x + i) + tl.load(y + i))


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:90"])
def test_a_read_only_view_of_an_array_that_is_stored_to(target: str) -> None:
    x = np.arange(4, dtype=np.float32)
    y = x.view()
    y.flags.writeable = False
    added[(1,)](x, y, target=target)
    assert x.tolist() == [0, 2, 4, 6]


def test_a_float_beyond_float32() -> None:
    x = np.zeros(4, np.float32)
    with warnings.catch_warnings(action="error"):
        ones[(1,)](x, 1e300, target="sim:cuda:90")
    assert np.isinf(x).all()
