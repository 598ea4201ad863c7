"""Loops whose bounds and steps are known only when they run, at the ends of what they may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.sim import SimulationError


@weft.jit
def iterations(x, start, end, step):
    count = 0
    for i in range(start, end, step):
        count += 1
        tl.store(x + count, i, mask=count < 8)
        tl.device_assert(count < 8)
    tl.store(x, count)


@weft.jit
def iterations_by(x, start, end, STEP: tl.constexpr):
    count = 0
    for i in range(start, end, STEP):
        count += 1
        tl.store(x + count, i, mask=count < 8)
        tl.device_assert(count < 8)
    tl.store(x, count)


@weft.jit
def turns_in_int64(x, start, end, STEP: tl.constexpr):
    count = 0
    for i in range(start.to(tl.int64), end, STEP):
        count += 1
        tl.store(x + count, i.to(tl.int32), mask=count < 8)
    tl.store(x, count)


def ran(kernel: Any, *bounds: int, target: str = "cpu") -> list[int]:
    x = np.zeros(8, np.int32)
    kernel[(1,)](x, *bounds, debug=True, target=target)
    return x[1 : 1 + x[0]].tolist()


LARGEST = 2**31 - 1
ENDS = [
    (LARGEST - 647, LARGEST, 1000),
    (LARGEST - 47, LARGEST, 16),
    (LARGEST - 3, LARGEST, 2),
    (-(2**31), LARGEST, 2**30),
    (LARGEST - 1, LARGEST, LARGEST),
]


@pytest.mark.parametrize("kernel", [iterations, iterations_by])
@pytest.mark.parametrize("bounds", ENDS, ids=str)
def test_the_last_turn_is_near_the_greatest_integer(kernel: Any, bounds: tuple[int, int, int]) -> None:
    """The counter went round, and the loop on, for ever."""
    assert ran(kernel, *bounds) == list(range(*bounds))


@pytest.mark.parametrize("bounds", ENDS, ids=str)
def test_turns_are_counted_on_a_gpu_where_the_step_is_known_only_there(bounds: tuple[int, int, int]) -> None:
    """What is counted has 64 bits, and does not wrap."""
    assert ran(iterations, *bounds, target="sim:cuda:80") == list(range(*bounds))


def test_the_simulator_says_that_a_gpu_would_go_on() -> None:
    """A step that is a constant is added to the variable itself."""
    with pytest.raises(SimulationError) as caught:
        ran(iterations_by, LARGEST - 47, LARGEST, 16, target="sim:cuda:80")
    assert caught.value.message == (
        "the counter of this loop wraps: after 2147483632 comes 2147483648, which is no int32, so that a GPU goes on"
    )


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
def test_counted_in_int64_nothing_wraps(target: str) -> None:
    bounds = (LARGEST - 47, LARGEST, 16)
    assert ran(turns_in_int64, *bounds, target=target) == list(range(*bounds))


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
@pytest.mark.parametrize("bounds", [(0, 10, -1), (10, 0, -3), (-(2**31), LARGEST, -1)], ids=str)
def test_a_step_that_is_negative(bounds: tuple[int, int, int], target: str) -> None:
    assert ran(iterations, *bounds, target=target) == list(range(*bounds))


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
def test_a_step_of_0(target: str) -> None:
    """No iteration, and an error where `debug` asks for it."""
    with pytest.raises(weft.DeviceAssertionError) as caught:
        ran(iterations, 0, 10, 0, target=target)
    assert caught.value.message == "the step of a range must not be 0"
    assert caught.value.span is not None
    x = np.full(8, -1, np.int32)
    iterations[(1,)](x, 0, 10, 0, target=target)
    assert x.tolist() == [0] + [-1] * 7


def test_ordinary_bounds() -> None:
    for bounds in ((0, 10, 3), (5, 5, 2), (7, 3, 4), (-7, 9, 5)):
        assert ran(iterations, *bounds) == ran(iterations_by, *bounds) == list(range(*bounds))


@weft.jit
def constant_bounds(x, N: tl.constexpr):
    total = 0
    for i in range(0, N, 3):
        total += i
    for i in range(0, 2147483647, 2147483646):
        total += i // 2
    tl.store(x, total)


def test_bounds_that_are_constants() -> None:
    x = np.zeros(1, np.int32)
    constant_bounds[(1,)](x, 10)
    assert x[0] == 18 + LARGEST // 2
