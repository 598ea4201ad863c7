"""Meanings that a fault put into the compiler on purpose changed, and no other test noticed (see tests/mutants)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

TARGETS = ["cpu", "sim:cuda:80", "sim:cuda:90"]


@weft.jit
def masked_scalars(x, out, n):
    for i in range(4):
        tl.store(out + i, tl.load(x + i, mask=i < n, other=-7.0), mask=i != 1)
    tl.store(out + 4, tl.load(x + 4, mask=n > 9))


@pytest.mark.parametrize("target", TARGETS)
def test_scalars_have_masks(target: str) -> None:
    x, out = np.arange(1, 6, dtype=np.float32), np.full(5, 99, np.float32)
    masked_scalars[(1,)](x, out, 3, target=target)
    assert out.tolist() == [1, 99, 3, -7, 0]


@weft.jit
def extended(x, out):
    i = tl.arange(0, 16)
    found = tl.load(x + i) > 0
    tl.store(out + i, found.to(tl.int32) + found.to(tl.int8) * 16 + (found.to(tl.uint16) * 256).to(tl.int32))
    tl.store(out + 16, (tl.load(x) > 0).to(tl.int64).to(tl.int32))


@pytest.mark.parametrize("target", TARGETS)
def test_a_boolean_is_0_or_1(target: str) -> None:
    x, out = np.tile(np.float32([1, -1]), 8), np.zeros(17, np.int32)
    extended[(1,)](x, out, target=target)
    assert out.tolist() == [273, 0] * 8 + [1]


@weft.jit
def from_far_below(x, out, far):
    i = tl.arange(0, 16)
    away = far.to(tl.int64)
    tl.store(out + i, tl.load((x - away) + (tl.full((16,), far, tl.uint32) + i.to(tl.uint32))))


@pytest.mark.parametrize("target", TARGETS)
def test_an_offset_of_32_unsigned_bits_is_not_negative(target: str) -> None:
    x, out = np.arange(16, dtype=np.int8), np.zeros(16, np.int8)
    from_far_below[(1,)](x, out, 1 << 31, target=target)
    assert out.tolist() == list(range(16))


@weft.jit
def quotients(x, y, out):
    i = tl.arange(0, 16)
    narrow, wide = tl.load(x + i), tl.load(y + i)
    tl.static_assert((narrow / wide).dtype == tl.float32 and (wide / narrow).dtype == tl.float32)
    tl.store(out + i, narrow / wide)
    tl.store(out + 16 + i, wide / narrow)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("narrow", [np.float16, np.int16])
def test_a_quotient_has_the_wider_type(target: str, narrow: Any) -> None:
    x, y = np.arange(1, 17).astype(narrow), (np.arange(16) + 1e4 + 1 / 3).astype(np.float32)
    out = np.zeros((2, 16), np.float32)
    quotients[(1,)](x, y, out, target=target)
    wide = x.astype(np.float32)
    np.testing.assert_allclose(out, [wide / y, y / wide], rtol=1e-6)


@weft.jit
def quotients_of_integers(x, out):
    i = tl.arange(0, 16)
    v = tl.load(x + i)
    tl.static_assert((v / 3).dtype == tl.float32)
    tl.store(out + i, v / 3)


@pytest.mark.parametrize("target", TARGETS)
def test_a_quotient_of_integers_is_a_float(target: str) -> None:
    x, out = np.arange(70_000, 70_016, dtype=np.int32), np.zeros(16, np.float32)
    quotients_of_integers[(1,)](x, out, target=target)
    np.testing.assert_allclose(out, x / 3, rtol=1e-6)


@weft.jit
def unsigned_vectors(x, y, out):
    i = tl.arange(0, 64)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b)
    tl.store(out + 64 + i, a % b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_vectors_are_divided_as_such(target: str, kind: Any) -> None:
    most = np.iinfo(kind).max
    x = np.full(64, most, kind) - np.arange(64, dtype=kind)
    y = np.tile(np.array([3, 7, most // 2 + 2, most], kind), 16)
    out = np.zeros((2, 64), kind)
    unsigned_vectors[(1,)](x, y, out, target=target)
    np.testing.assert_array_equal(out, [x // y, x % y])
