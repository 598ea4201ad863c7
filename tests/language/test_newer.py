"""What came into the language with Triton 3.7 to 3.9, on every target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

TARGETS = ["cpu", "sim:cuda:80", "sim:cuda:90"]


@weft.jit
def negated(x, o, T: tl.constexpr):
    i = tl.arange(0, 8)
    tl.store(o + i, (-tl.load(x + i).to(T)).to(tl.float32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [tl.float32, tl.float16, tl.bfloat16, tl.float8e5, tl.float8e4nv, tl.float64])
def test_the_sign_of_a_negated_zero(kind: Any, target: str) -> None:
    x = np.array([0.0, -0.0, 1.0, -2.0, np.inf, -np.nan, 3.5, -0.5], np.float32)
    if kind in (tl.float8e4nv, tl.float8e5):  # to which infinity is the greatest number
        x[4] = 448
    o = np.zeros(8, np.float32)
    negated[(1,)](x, o, kind, target=target)
    assert np.array_equal(o, -x, equal_nan=True)
    assert np.array_equal(np.signbit(o), np.signbit(-x) & ~np.isnan(x) | np.signbit(o) & np.isnan(x))


@weft.jit
def end_to_end(x, y, z, D: tl.constexpr):
    i = tl.arange(0, 4)[:, None, None] * 16 + tl.arange(0, 8)[None, :, None] * 2 + tl.arange(0, 2)[None, None]
    tile = tl.cat(tl.load(x + i), tl.load(y + i), dim=D)
    tl.store(z + tl.arange(0, 128), tile.reshape(128))


@weft.jit
def end_to_end_1d(x, y, z, REORDER: tl.constexpr):
    i = tl.arange(0, 64)
    both = tl.cat(tl.load(x + i, cache_modifier=".cs"), tl.load(y + i), can_reorder=REORDER)
    tl.store(z + tl.arange(0, 128), both)


@pytest.mark.parametrize("target", TARGETS)
def test_cat_is_in_order_along_any_dimension(target: str) -> None:
    a = np.arange(64, dtype=np.int32).reshape(4, 8, 2)
    z = np.zeros(128, np.int32)
    for dim in (0, 1, 2, -1):
        end_to_end[(1,)](a, ~a, z, dim, target=target)
        assert np.array_equal(z, np.concatenate([a, ~a], dim).ravel()), dim
    for reorder in (True, False):
        z[:] = 0
        made = end_to_end_1d[(1,)](a, ~a, z, reorder, target=target)
        assert np.array_equal(z, np.concatenate([a, ~a]).ravel()), reorder
        if target != "cpu":
            assert "ld.global.cs" in made.asm["ptx"]
