"""A compiled kernel that is launched by itself heeds arrays that overlap, as a launch of the function does."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def spread(x, y, n, B: tl.constexpr):
    """Loads and stores by turns: the order shows where the arrays overlap."""
    i = tl.arange(0, B)
    a = tl.load(x + i, mask=i < n)
    b = tl.load(x + i + 1, mask=i < n)
    tl.store(y + i, a, mask=i < n)
    c = tl.load(x + i + 2, mask=i < n)
    tl.store(y + i + 7, a + b + c, mask=i < n)


@weft.jit
def spread_tuple(t, n, B: tl.constexpr):
    i = tl.arange(0, B)
    a = tl.load(t[0] + i, mask=i < n)
    tl.store(t[1] + i, a, mask=i < n)
    tl.store(t[1] + i + 7, a + tl.load(t[0] + i + 2, mask=i < n), mask=i < n)


class Sub(np.ndarray):
    """Another class of arrays."""


def _expected(x: int, y: int) -> np.ndarray[Any, Any]:
    memory = np.arange(400, dtype=np.float32)
    a, b = memory[x : x + 128].copy(), memory[x + 1 : x + 129].copy()
    memory[y : y + 128] = a
    c = memory[x + 2 : x + 130].copy()
    memory[y + 7 : y + 135] = a + b + c
    return memory


def _compiled() -> Any:
    return spread.warmup(np.zeros(128, np.float32)[1:], np.zeros(128, np.float32)[1:], 128, B=128, grid=(1,))


def _from_tile_ir() -> Any:
    return weft.compile(_compiled().asm["ttir"])


def _unpickled() -> Any:
    kernel = _compiled()
    kernel.given_options = pickle.loads(pickle.dumps(kernel.given_options))
    return kernel


@pytest.mark.parametrize("kind", [np.ndarray, Sub])
@pytest.mark.parametrize("make", [_compiled, _from_tile_ir, _unpickled])
def test_every_distance(make: Callable[[], Any], kind: type[np.ndarray[Any, Any]]) -> None:
    kernel = make()
    for y in (1, 33, 38, 39, 40, 41, 42, 43, 47, 63, 101, 200):
        memory = np.arange(400, dtype=np.float32).view(kind)
        constants = (128,) if make is _from_tile_ir else (128, 128)
        kernel[(1,)](memory[41:], memory[y:], *constants)
        np.testing.assert_array_equal(memory, _expected(41, y), err_msg=f"at {y}")


def test_in_a_tuple() -> None:
    kernel = spread_tuple.warmup((np.zeros(9, np.float32)[1:], np.zeros(9, np.float32)[1:]), 128, B=128, grid=(1,))
    for y in (33, 41, 43, 200):
        ours, theirs = np.arange(400, dtype=np.float32), np.arange(400, dtype=np.float32)
        kernel[(1,)]((ours[41:], ours[y:]), 128, 128)
        spread_tuple[(1,)]((theirs[41:], theirs[y:]), 128, B=128)
        np.testing.assert_array_equal(ours, theirs, err_msg=f"at {y}")
