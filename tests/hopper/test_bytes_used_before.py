"""Loops whose buffers lie where other things were before: what threads wrote there must not come later than what the
copy engine writes, for which there is a fence before the warps that copy may begin."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl

from .running import integers
from .specialized import SCHEDULES, is_specialized, simulated, why_not


@weft.jit
def behind(a, b, c, extra, n, KIND: tl.constexpr):
    """a b + z, one block of 64 x 64; z is found by means of shared memory."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    if KIND == "transposed":
        given = tl.load(extra + i * 64 + j)
        tl.store(extra + i * 64 + j, given.T)
    else:
        for at in tl.range(0, 192, 64):  # whose products are of numbers in registers
            left = tl.load(extra + i * 192 + at + j).to(tl.float16)
            acc = tl.dot(left, tl.load(b + (at + i) * 64 + j), acc)
    for at in tl.range(0, n, 64, warp_specialize=True):
        left = tl.load(a + i * n + at + j, at + j < n, 0.0)
        acc = tl.dot(left, tl.load(b + (at + i) * 64 + j, at + i < n, 0.0), acc)
    if KIND == "transposed":
        acc = tl.cumsum(acc, 0)  # with a fence, which comes too late
    tl.store(c + i * 64 + j, acc)


@pytest.mark.parametrize("kind", ["transposed", "copied"])
def test_fence_before_the_warps_that_copy(kind: str) -> None:
    size = 192
    a, b = integers(1, (64, size), np.float16), integers(2, (size, 64), np.float16)
    c, extra = np.zeros((64, 64), np.float32), integers(3, (64, 64 if kind == "transposed" else size), np.float32)
    before, product = extra.copy(), a.astype(np.float64) @ b.astype(np.float64)
    made = simulated(behind, (1,), a, b, c, extra, size, kind, options=SCHEDULES[0], num_warps=4, num_stages=3)
    assert is_specialized(made), why_not(made)
    if kind == "transposed":
        np.testing.assert_array_equal(extra, before.T)
        np.testing.assert_array_equal(c, np.cumsum(product, axis=0))
    else:
        np.testing.assert_array_equal(c, product + before @ b.astype(np.float64))
