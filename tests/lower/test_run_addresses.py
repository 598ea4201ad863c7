"""Elements in a row that are accessed one by one have one address: what lies between them is part of the access."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def lower_triangle(x, out, stride, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    block = tl.program_id(0) * N
    places = (block + i) * stride + block + j
    tl.store(out + places, tl.load(x + places, mask=j <= i, other=-1.0), mask=j < i + 2)


@weft.jit
def lower_triangle_of_odd_rows(x, out, stride, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    places = i * stride + j
    tl.store(out + places, tl.load(x + places, mask=j <= i, other=-1.0), mask=j < i + 2)


def distances(kernel: Any, what: str, stride: int) -> dict[int, int]:
    """How often each number of bytes is added to an address by the accesses of a tile of 32x32 in 4 warps."""
    f = weft.MockTensor("fp32")
    ptx = kernel.warmup(f, f, stride, 32, grid=(1,), target="cuda:90").asm["ptx"]
    found: dict[int, int] = {}
    for distance in re.findall(rf"{what}\.global\.b32 .*\[%rd\d+(?:\+(\d+)| \+ (\d+))?\]", ptx):
        bytes = int(distance[0] or distance[1] or 0)
        found[bytes] = found.get(bytes, 0) + 1
    return found


def test_a_run_has_one_address() -> None:
    assert distances(lower_triangle, "ld", 64) == {0: 2, 4: 2, 8: 2, 12: 2}
    stores = distances(lower_triangle, "st", 64)
    assert stores == {0: 2, 4: 2, 8: 2, 12: 2}


def test_rows_that_begin_anywhere_have_addresses_of_their_own() -> None:
    """The sums have 32 bits: places in a row that begins anywhere may lie on both sides of 2**31."""
    assert set(distances(lower_triangle_of_odd_rows, "ld", 33)) == {0}


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
def test_the_same_elements_are_accessed(target: str) -> None:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    out = np.zeros_like(x)
    lower_triangle[(2,)](x, out, 64, 32, target=target)
    expected = np.zeros_like(x)
    i, j = np.ogrid[:32, :32]
    for block in (slice(0, 32), slice(32, 64)):
        here = np.where(j <= i, x[block, block], np.float32(-1))
        expected[block, block] = np.where(j < i + 2, here, 0)
    np.testing.assert_array_equal(out, expected)
