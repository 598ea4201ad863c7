"""With debug, a reduction whose function does not commute on the values at hand is an error, on CPU and simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import DeviceAssertionError
from weft.language.builtins.commuting import TEXT

TARGETS = ("cpu", "sim:cuda:80")


@weft.jit
def difference(a, b):
    return a - b


@weft.jit
def second(a, b):
    return b


@weft.jit
def largest(a, b):
    if a > b:
        return a
    return b


@weft.jit
def welford(mean, square, weight, mean2, square2, weight2):
    delta = mean2 - mean
    total = weight + weight2
    share = weight2 / total
    return mean + delta * share, square + square2 + delta * delta * weight * share, total


@weft.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@weft.jit
def reduced(o, x, N: tl.constexpr, F: tl.constexpr, AXIS: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    tl.device_print("r", tl.reduce(tile, AXIS, F))


@weft.jit
def variance(o, x, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, N))
    _, square, weight = tl.reduce((value, value * 0, value * 0 + 1), 0, welford)
    tl.store(o, square / weight)


@weft.jit
def composed(o, x, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, N))
    a, b = tl.reduce((value, value + 1), 0, affine)
    tl.store(o, a + b)


def _launch(x: np.ndarray, f: Any, axis: int | None, target: str) -> None:
    reduced[(1,)](x, x, x.shape[0], f, axis, target=target, debug=True)


@pytest.mark.parametrize("target", TARGETS)
def test_what_does_not_commute_is_found(target: str) -> None:
    x = np.arange(16, dtype=np.int32).reshape(4, 4)
    for values, f, axis in ((x, difference, 0), (x.astype(np.float32), second, None)):
        with pytest.raises(DeviceAssertionError) as caught:
            _launch(values, f, axis, target)
        assert TEXT in str(caught.value)
    with pytest.raises(DeviceAssertionError, match="does not commute"):
        composed[(1,)](np.zeros(1, np.int32), np.arange(8, dtype=np.int32), 8, target=target, debug=True)


@pytest.mark.parametrize("target", TARGETS)
def test_on_the_values_at_hand(target: str) -> None:
    _launch(np.full((4, 4), 3, np.int32), second, 0, target)
    _launch(np.arange(16, dtype=np.int32).reshape(4, 4), largest, 1, target)


@pytest.mark.parametrize("target", TARGETS)
def test_rounding_is_no_order(target: str) -> None:
    x, o = np.random.default_rng(5).normal(size=64).astype(np.float32), np.zeros(1, np.float32)
    variance[(1,)](o, x, 64, target=target, debug=True)
    np.testing.assert_allclose(o[0], x.var(), rtol=1e-5)


def test_without_debug_nothing_is_added() -> None:
    text = composed.warmup(np.zeros(1, np.int32), np.arange(8, dtype=np.int32), 8, grid=(1,)).asm["ttir"]
    assert "tt.map_elementwise" not in text and "tt.assert" not in text
