"""Half precision on processors that have no instruction for it gives the bits that others give."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import weft
import weft.language as tl

PLAIN = {"cpu": "x86-64", "features": "+sse2,-avx,-avx2,-avx512f,-f16c"}

pytestmark = pytest.mark.skipif(platform.machine().lower() not in ("x86_64", "amd64"), reason="for x86-64")


@weft.jit
def convert(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n).to(y.dtype.element_ty), mask=i < n)


def test_every_half_as_a_float() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    floats = np.zeros(halves.size, np.float32)
    convert[(64,)](halves, floats, halves.size, BLOCK=1024, **PLAIN)
    np.testing.assert_array_equal(floats, halves.astype(np.float32))
    nan = np.isnan(halves)
    assert (np.signbit(floats) == np.signbit(halves)).all() and np.isnan(floats[nan]).all()


def test_floats_as_halves() -> None:
    rng = np.random.default_rng(1)
    middles = (np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)).view(np.uint32)
    near = np.concatenate([middles + d for d in (0, 0xFFF, 0x1000, 0x1001, 0x1FFF)])  # ties and their neighbours
    bits = np.concatenate([near, near | 0x80000000, rng.integers(0, 1 << 32, 1 << 16, np.uint32)]).astype(np.uint32)
    floats = bits.view(np.float32)
    halves = np.zeros(floats.size, np.float16)
    convert[(weft.cdiv(floats.size, 1024),)](floats, halves, floats.size, BLOCK=1024, **PLAIN)
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = floats.astype(np.float16)
    number = ~np.isnan(floats)
    np.testing.assert_array_equal(halves[number].view(np.uint16), wanted[number].view(np.uint16))
    assert np.isnan(halves[~number]).all()


@weft.jit
def gate(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    wide = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(out + i, tl.maximum(-a * b + a, b) / 3.0 + tl.sigmoid(wide).to(tl.float16), mask=i < n)


def test_vectors_of_halves_are_computed_without_calls() -> None:
    """LLVM would call a function to convert each, and one for each product and sum with one rounding."""
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(3000).astype(np.float16) for _ in range(2))
    out, expected = np.zeros_like(x), np.zeros_like(x)
    kernel = gate[(3,)](x, y, out, x.size, BLOCK=1024, **PLAIN)
    gate[(3,)](x, y, expected, x.size, BLOCK=1024)
    calls = [line.split()[-1] for line in kernel.asm["asm"].splitlines() if line.lstrip().startswith("call")]
    assert not any("sf2" in call or "fma" in call for call in calls), calls
    np.testing.assert_allclose(out, expected, rtol=2e-3, atol=2e-3)
