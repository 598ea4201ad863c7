"""One kernel of each family on tiles of 2^12 and 2^20 elements: the code is loops, so that it is as long for both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from fuzz.compare import Variant

Check = Callable[[np.ndarray], np.ndarray]


@weft.jit
def combined(a, b):
    return a * b + a + b


@weft.jit
def linear(a, b, c, d):
    return a * c, b * c + d


@weft.jit
def kernel(out, x, R: tl.constexpr, C: tl.constexpr, WHAT: tl.constexpr):
    i = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    all = tl.arange(0, R * C)
    if WHAT == "reduce 0":
        tl.store(out + tl.arange(0, C), tl.sum(tl.load(x + i), 0))
    elif WHAT == "reduce 1":
        tl.store(out + tl.arange(0, R), tl.reduce(tl.load(x + i) & 1, 1, combined))
    elif WHAT == "argmax":
        tl.store(out + tl.arange(0, R), tl.argmax(tl.load(x + i), 1))
    elif WHAT == "scan 0":
        tl.store(out + i, tl.cumsum(tl.load(x + i), 0))
    elif WHAT == "scan of pairs":
        tl.store(out + i, tl.associative_scan((tl.load(x + i) & 1, tl.load(x + i)), 1, linear)[1])
    elif WHAT == "sort":
        tl.store(out + i, tl.sort(tl.load(x + i)))
    elif WHAT == "topk":
        tl.store(out + tl.arange(0, R)[:, None] * 4 + tl.arange(0, 4)[None, :], tl.topk(tl.load(x + i), 4))
    elif WHAT == "histogram":
        tl.store(out + tl.arange(0, 256), tl.histogram(tl.load(x + all) & 255, 256))
    elif WHAT == "gather":
        tl.store(out + i, tl.gather(tl.load(x + i), (i * 7) % R, 0))
    elif WHAT == "interleave":
        half = tl.arange(0, R * C // 2)
        tl.store(out + all, tl.interleave(tl.load(x + half), tl.load(x + R * C // 2 + half)))
    elif WHAT == "permute":
        turned = tl.permute(tl.reshape(tl.load(x + all), (R // 2, 2, C)), (1, 2, 0))
        tl.store(out + all, tl.reshape(turned, (R * C,)))
    elif WHAT == "flip":
        tl.store(out + i, tl.flip(tl.load(x + i), 0))
    elif WHAT == "atomics":
        tl.store(out + all, tl.atomic_xchg(x + all, 1))
    else:  # a product of [R, 64] and [64, C]
        k = tl.arange(0, 64)
        a = tl.load(x + tl.arange(0, R)[:, None] * 64 + k[None, :]).to(tl.int8)
        b = tl.load(x + k[:, None] * C + tl.arange(0, C)[None, :]).to(tl.int8)
        tl.store(out + i, tl.dot(a, b))


def _pairs(x: np.ndarray) -> np.ndarray:
    result, state = np.empty_like(x), np.zeros_like(x[:, 0])
    for j in range(x.shape[1]):
        state = state * (x[:, j] & 1) + x[:, j]
        result[:, j] = state
    return result


def _combined(x: np.ndarray) -> np.ndarray:  # of bits: a + b + a * b is 2 ** (how many) - 1
    ones = (x & 1).sum(1).astype(np.uint64)
    wrapped = (np.uint64(1) << np.minimum(ones, 32)) - np.uint64(1)
    return wrapped.astype(np.uint32).view(np.int32)


def _product(x: np.ndarray) -> np.ndarray:
    rows, columns, flat = *x.shape, x.ravel()
    a, b = flat[: rows * 64].reshape(rows, 64), flat[: columns * 64].reshape(64, columns)
    return a.astype(np.int8).astype(np.int32) @ b.astype(np.int8).astype(np.int32)


FAMILIES: dict[str, Check] = {
    "reduce 0": lambda x: x.sum(0),
    "reduce 1": _combined,
    "argmax": lambda x: x.argmax(1),
    "scan 0": lambda x: x.cumsum(0, dtype=np.int32),
    "scan of pairs": _pairs,
    "sort": lambda x: np.sort(x, 1),
    "topk": lambda x: np.sort(x, 1)[:, :-5:-1],
    "histogram": lambda x: np.bincount(x.ravel() & 255, minlength=256),
    "gather": lambda x: np.take_along_axis(x, (np.arange(x.size).reshape(x.shape) * 7) % len(x), 0),
    "interleave": lambda x: x.reshape(2, -1).T,
    "permute": lambda x: x.reshape(len(x) // 2, 2, -1).transpose(1, 2, 0),
    "flip": lambda x: x[::-1],
    "atomics": lambda x: x.copy(),
    "product": _product,
}
STAGES = {"sort": 55 / 21, "topk": 10 / 6}
"""Networks of n (n + 1) / 2 stages for rows of 2^n elements, of n for topk, each stage with a loop of its own."""


def length(size: int, what: str) -> int:
    """Bytes of the object of a kernel for square tiles; its results are checked."""
    x = np.random.default_rng(0).integers(-100, 100, (size, size)).astype(np.int32)
    expected, out = FAMILIES[what](x), np.zeros(x.size, np.int32)
    with Variant().applied():
        binary: Any = weft.jit(kernel.fn)[(1,)](out, x, *x.shape, WHAT=what)
    np.testing.assert_array_equal(out[: expected.size], expected.ravel())
    return len(binary.kernel)


@pytest.mark.parametrize("what", FAMILIES)
@pytest.mark.thinned(2)
def test_the_code_is_as_long_for_a_million_elements(what: str) -> None:
    few, many = length(64, what), length(1024, what)
    assert many < 1.5 * STAGES.get(what, 1.0) * few + 1000
