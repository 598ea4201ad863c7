"""Element-wise operations against plain definitions: all values of eight bits, the corners of the rest."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.sim.arithmetic import elementwise
from weft.sim.values import DTYPES

BYTES = np.arange(-128, 128).astype(np.int8)
LEFT, RIGHT = (x.reshape(-1) for x in np.meshgrid(BYTES, BYTES, indexing="ij"))


def _signed(v: int, bits: int = 8) -> int:
    v &= (1 << bits) - 1
    return v - (1 << bits) if v >> bits - 1 else v


def _truncated(a: int, b: int) -> int:
    return 0 if b == 0 else int(math.copysign(abs(a) // abs(b), a * b)) if a else 0


INTEGER = {
    "arith.addi": lambda a, b: a + b,
    "arith.subi": lambda a, b: a - b,
    "arith.muli": lambda a, b: a * b,
    "arith.divsi": _truncated,
    "arith.remsi": lambda a, b: a if b == 0 else a - _truncated(a, b) * b,
    "arith.divui": lambda a, b: 0 if b == 0 else (a & 255) // (b & 255),
    "arith.remui": lambda a, b: a if b == 0 else (a & 255) % (b & 255),
    "arith.floordivsi": lambda a, b: a // b if b else 0,
    "arith.ceildivsi": lambda a, b: -(-a // b) if b else 0,
    "arith.ceildivui": lambda a, b: -(-(a & 255) // (b & 255)) if b else 0,
    "arith.andi": lambda a, b: a & b,
    "arith.ori": lambda a, b: a | b,
    "arith.xori": lambda a, b: a ^ b,
    "arith.shli": lambda a, b: a << b if 0 <= b < 8 else 0,
    "arith.shrui": lambda a, b: (a & 255) >> b if 0 <= b < 8 else 0,
    "arith.shrsi": lambda a, b: a >> (b if 0 <= b < 8 else 7),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.maxui": lambda a, b: max(a & 255, b & 255),
    "arith.minui": lambda a, b: min(a & 255, b & 255),
    "arith.mulhsi": lambda a, b: a * b >> 8,
    "arith.mulhui": lambda a, b: (a & 255) * (b & 255) >> 8,
}


@pytest.mark.parametrize("name", INTEGER)
def test_integers(name: str) -> None:
    with np.errstate(all="ignore"):
        got = elementwise(name, [LEFT, RIGHT], "i8", {})
    want = [_signed(INTEGER[name](a, b)) for a, b in zip(LEFT.tolist(), RIGHT.tolist(), strict=True)]
    assert got.dtype == np.int8
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", INTEGER)
@pytest.mark.thinned(2)
def test_wide_integers(name: str, bits: int) -> None:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    corners = [low, low + 1, -7, -1, 0, 1, 2, 5, bits - 1, bits, high - 1, high]
    a, b = (x.reshape(-1) for x in np.meshgrid(np.array(corners), np.array(corners), indexing="ij"))
    with np.errstate(all="ignore"):
        got = elementwise(name, [a.astype(f"i{bits // 8}"), b.astype(f"i{bits // 8}")], f"i{bits}", {})
    mask = (1 << bits) - 1

    def want(x: int, y: int) -> int:
        match name:
            case "arith.divui":
                return 0 if y == 0 else (x & mask) // (y & mask)
            case "arith.remui":
                return x if y == 0 else (x & mask) % (y & mask)
            case "arith.divsi":
                return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            case "arith.remsi":
                return x if y == 0 else abs(x) % abs(y) * (1 if x >= 0 else -1)
            case "arith.ceildivui":
                return 0 if y == 0 else -(-(x & mask) // (y & mask))
            case "arith.shli":
                return x << y if 0 <= y < bits else 0
            case "arith.shrui":
                return (x & mask) >> y if 0 <= y < bits else 0
            case "arith.shrsi":
                return x >> (y if 0 <= y < bits else bits - 1)
            case "arith.maxui":
                return max(x & mask, y & mask)
            case "arith.minui":
                return min(x & mask, y & mask)
            case "arith.mulhsi":
                return x * y >> bits
            case "arith.mulhui":
                return (x & mask) * (y & mask) >> bits
        return INTEGER[name](x, y)

    np.testing.assert_array_equal(got, [_signed(want(x, y), bits) for x, y in zip(a.tolist(), b.tolist(), strict=True)])


SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.25, 1e-40, -1e30, np.inf, -np.inf, np.nan]


def test_floats_and_nan() -> None:
    a, b = (np.array(x, np.float32).reshape(-1) for x in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        for name, fn in (("addf", np.add), ("mulf", np.multiply), ("divf", np.divide), ("remf", np.fmod)):
            np.testing.assert_array_equal(elementwise(f"arith.{name}", [a, b], "f32", {}), fn(a, b))
        either = np.isnan(a) | np.isnan(b)
        assert np.isnan(elementwise("arith.maximumf", [a, b], "f32", {}))[either].all()
        passed = elementwise("arith.minnumf", [a, b], "f32", {})
        assert (np.isnan(passed) == (np.isnan(a) & np.isnan(b))).all()
        for predicate, want in (("oeq", (a == b)), ("une", (a != b)), ("ult", (a < b) | either), ("ord", ~either)):
            np.testing.assert_array_equal(elementwise("arith.cmpf", [a, b], "i1", {"predicate": predicate}), want)
        negated = elementwise("arith.negf", [a], "f32", {})
        np.testing.assert_array_equal(np.signbit(negated), ~np.signbit(a))


@pytest.mark.parametrize("elem", ["f16", "bf16", "f32", "f64"])
def test_fma_rounds_once(elem: str) -> None:
    rng = np.random.default_rng(0)
    dtype = DTYPES[elem]
    a, b = (rng.normal(size=300).astype(dtype) for _ in range(2))
    c = (-(a.astype(np.float64) * b.astype(np.float64)) * (1 + rng.integers(-1, 2, 300) * 2.0**-9)).astype(dtype)
    c[::3] = (rng.normal(size=100) * 2.0**-30).astype(dtype)
    got = elementwise("math.fma", [a, b, c], elem, {})
    for x, y, z, result in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        unit = np.array([result])
        bits = unit.view(f"i{dtype.itemsize}")
        near = abs(Fraction(float(result)) - exact)
        for step in (-1, 1):
            other = (bits + step).view(dtype)[0]
            if np.isfinite(np.float64(other)):
                assert near <= abs(Fraction(float(other)) - exact)


def test_casts() -> None:
    x = np.array([-2.7, 2.7, 3e9, -3e9, 1e20, np.nan, np.inf, -np.inf], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            elementwise("arith.fptosi", [x], "i32", {}),
            [-2, 2, 2**31 - 1, -(2**31), 2**31 - 1, 0, 2**31 - 1, -(2**31)],
        )
        unsigned = elementwise("arith.fptoui", [x], "i32", {}).view(np.uint32)
        np.testing.assert_array_equal(unsigned, [0, 2, 3000000000, 0, 2**32 - 1, 0, 2**32 - 1, 0])
        np.testing.assert_array_equal(
            elementwise("arith.fptosi", [x], "i64", {})[2:5], [3 * 10**9, -3 * 10**9, 2**63 - 1]
        )
    i = np.array([-1, 5, 127], np.int8)
    np.testing.assert_array_equal(elementwise("arith.extui", [i], "i32", {}), [255, 5, 127])
    np.testing.assert_array_equal(elementwise("arith.extsi", [i], "i32", {}), [-1, 5, 127])
    np.testing.assert_array_equal(elementwise("arith.uitofp", [i], "f32", {}), [255, 5, 127])
    yes = np.array([True, False])
    np.testing.assert_array_equal(elementwise("arith.extsi", [yes], "i32", {}), [-1, 0])
    np.testing.assert_array_equal(elementwise("arith.extui", [yes], "i32", {}), [1, 0])
    np.testing.assert_array_equal(elementwise("arith.trunci", [np.array([256, -1], np.int32)], "i8", {}), [0, -1])


def test_integers_to_bf16_round_once() -> None:
    half = (1 << 61) + (1 << 53)  # halfway between two values of bf16
    x = np.array([half, half + 1, half - 1], np.int64)
    got = elementwise("arith.sitofp", [x], "bf16", {}).astype(np.float64)
    np.testing.assert_array_equal(got, [2.0**61, 2.0**61 + 2.0**54, 2.0**61])


def test_rounding_to_small_floats() -> None:
    x = np.array([1 + 2**-8 + 2**-30, 449.0, -1e9, np.inf, np.nan, 65520.0])
    assert elementwise("arith.truncf", [x], "bf16", {})[0] == ml_dtypes.bfloat16(1 + 2**-7)
    fp8 = elementwise("arith.truncf", [x.astype(np.float32)], "f8E4M3FN", {}).astype(np.float32)
    np.testing.assert_array_equal(fp8[1:5], [448, -448, 448, np.nan])
    toward = elementwise("arith.truncf", [x.astype(np.float32)], "f16", {"roundingmode": "toward_zero"})
    assert float(toward[5]) == 65504 and float(toward[1]) == 449


def test_bits() -> None:
    x = np.array([0, 1, -1, 0x00F0], np.int32)
    np.testing.assert_array_equal(elementwise("math.ctpop", [x], "i32", {}), [0, 1, 32, 4])
    np.testing.assert_array_equal(elementwise("math.ctlz", [x], "i32", {}), [32, 31, 0, 24])
    np.testing.assert_array_equal(elementwise("math.cttz", [x], "i32", {}), [32, 0, 0, 4])


@weft.jit
def quotient_and_remainder(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, (x // y).to(tl.int32) * 2 + (x % y).to(tl.int32))


@pytest.mark.parametrize("target", ["cpu", "sim:cuda:80"])
def test_division_of_bits(target: str) -> None:
    a, b, out = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool), np.zeros(4, np.int32)
    quotient_and_remainder[(1,)](a, b, out, N=4, target=target)
    assert out.tolist() == [0, 0, 1, 2]
