"""Every conversion between two element types: all values of sources of 8 and 16 bits, of wider ones those where
rounding turns, against arithmetic in long doubles.

A kernel has one source and stores it as every type there is, once with the processor's own instructions and once
without.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

Array = np.ndarray[Any, np.dtype[Any]]
X86 = platform.machine().lower() in ("x86_64", "amd64")
PROCESSORS: dict[str, dict[str, Any]] = {"host": {}}
if X86:
    PROCESSORS["plain"] = {"cpu": "x86-64", "features": "+sse2,-sse4.1,-avx,-f16c"}


@dataclass(frozen=True)
class Format:
    """A float type: bits of the mantissa, exponent of the smallest normal number, largest number."""

    dtype: np.dtype[Any]
    mantissa: int
    least: int
    largest: float
    saturates: bool = False
    one_zero: bool = False


FORMATS = [
    Format(np.dtype(np.float16), 10, -14, 65504.0),
    Format(np.dtype(ml_dtypes.bfloat16), 7, -126, float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)),
    Format(np.dtype(np.float32), 23, -126, float(np.finfo(np.float32).max)),
    Format(np.dtype(np.float64), 52, -1022, float(np.finfo(np.float64).max)),
    Format(np.dtype(ml_dtypes.float8_e5m2), 2, -14, 57344.0, True),
    Format(np.dtype(ml_dtypes.float8_e4m3fn), 3, -6, 448.0, True),
    Format(np.dtype(ml_dtypes.float8_e4m3fnuz), 3, -7, 240.0, True, True),
    Format(np.dtype(ml_dtypes.float8_e5m2fnuz), 2, -15, 57344.0, True, True),
]
FLOATS = {f.dtype: f for f in FORMATS}
SMALL = [f.dtype for f in FORMATS[4:]]
INTEGERS = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
BOOL = np.dtype(np.bool_)


@weft.jit
def to_all(x, n, o0, o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, o11, o12, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o0 + i, v.to(o0.dtype.element_ty), mask=i < n)
    tl.store(o1 + i, v.to(o1.dtype.element_ty), mask=i < n)
    tl.store(o2 + i, v.to(o2.dtype.element_ty), mask=i < n)
    tl.store(o3 + i, v.to(o3.dtype.element_ty), mask=i < n)
    tl.store(o4 + i, v.to(o4.dtype.element_ty), mask=i < n)
    tl.store(o5 + i, v.to(o5.dtype.element_ty), mask=i < n)
    tl.store(o6 + i, v.to(o6.dtype.element_ty), mask=i < n)
    tl.store(o7 + i, v.to(o7.dtype.element_ty), mask=i < n)
    tl.store(o8 + i, v.to(o8.dtype.element_ty), mask=i < n)
    tl.store(o9 + i, v.to(o9.dtype.element_ty), mask=i < n)
    tl.store(o10 + i, v.to(o10.dtype.element_ty), mask=i < n)
    tl.store(o11 + i, v.to(o11.dtype.element_ty), mask=i < n)
    tl.store(o12 + i, v.to(o12.dtype.element_ty), mask=i < n)


@weft.jit
def narrow(x, n, o0, o1, o2, o3, o4, o5, o6, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o0 + i, v.to(o0.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(o1 + i, v.to(o1.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(o2 + i, v.to(o2.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(o3 + i, v.to(o3.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(o4 + i, v.to(o4.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(o5 + i, v.to(o5.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)
    tl.store(o6 + i, v.to(o6.dtype.element_ty, fp_downcast_rounding="rtz"), mask=i < n)


@weft.jit
def to_small(x, n, o0, o1, o2, o3, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o0 + i, v.to(o0.dtype.element_ty), mask=i < n)
    tl.store(o1 + i, v.to(o1.dtype.element_ty), mask=i < n)
    tl.store(o2 + i, v.to(o2.dtype.element_ty), mask=i < n)
    tl.store(o3 + i, v.to(o3.dtype.element_ty), mask=i < n)


# -- what is expected -------------------------------------------------------------------------------------------------


def rounded(values: Array, to: Format, toward_zero: bool = False) -> Array:
    """Long doubles as numbers of a format: to nearest even, or toward zero; NaN stays."""
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(values)
        last = np.maximum(exponent - 1, to.least) - to.mantissa  # exponent of a unit in the last place
        units = np.ldexp(values, -last)
        result = np.ldexp(np.trunc(units) if toward_zero else np.rint(units), last)
        beyond = np.abs(result) > to.largest
        held = toward_zero & np.isfinite(values) | to.saturates
        result = np.where(beyond, np.copysign(np.where(held, to.largest, np.inf), values), result)
        if to.one_zero:
            result = np.where(result == 0, 0, result)
        return np.asarray(np.where(np.isfinite(values) | np.isnan(values), result,
                                   np.copysign(to.largest if to.saturates else np.inf, values)))  # fmt: skip


def as_integers(values: Array, dtype: np.dtype[Any]) -> Array:
    """Long doubles toward zero, saturating; NaN is 0."""
    info = np.iinfo(dtype)
    with np.errstate(all="ignore"):
        inside = np.where(np.isnan(values), 0, np.clip(np.trunc(values), info.min, info.max))
        low = np.asarray(np.where(inside >= 0, inside, 0)).astype(np.uint64)
        high = np.asarray(np.where(inside < 0, -inside, 0)).astype(np.uint64)
        return (low - high).astype(dtype)


def wanted(x: Array, dtype: np.dtype[Any], toward_zero: bool = False) -> Array:
    """What `x` becomes as `dtype`; floats in long doubles, which hold every number there is."""
    if dtype == x.dtype and dtype in FLOATS:
        return exact(x)
    if dtype == BOOL:
        with np.errstate(invalid="ignore"):
            return np.asarray(x != 0)
    if dtype in FLOATS:
        return rounded(exact(x), FLOATS[dtype], toward_zero)
    if x.dtype in FLOATS:
        return as_integers(exact(x), dtype)
    return x.astype(dtype)


def exact(x: Array) -> Array:
    """The values as long doubles."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float32 if x.dtype.itemsize < 4 and x.dtype in FLOATS else x.dtype).astype(np.longdouble)


def agree(got: Array, expected: Array, x: Array) -> None:
    """Compare to the bit, but for the bits of NaN."""
    if got.dtype not in FLOATS:
        np.testing.assert_array_equal(got, expected)
        return
    have = exact(got)
    same = (have == expected) & (np.signbit(have) == np.signbit(expected)) | np.isnan(have) & np.isnan(expected)
    at = np.flatnonzero(~same)[:5]
    assert same.all(), f"{x.dtype} {x[at]} as {got.dtype}: {got[at]} for {expected[at]}"


# -- what is converted ------------------------------------------------------------------------------------------------


def values_of(dtype: np.dtype[Any]) -> Array:
    """Every value of up to 16 bits; of more those that lie around the numbers of every narrower type."""
    rng = np.random.default_rng(3)
    if dtype == BOOL:
        return np.array([False, True] * 40)
    if dtype.itemsize <= 2:
        count = 1 << 8 * dtype.itemsize
        return np.arange(count, dtype=f"u{dtype.itemsize}").view(dtype)
    bits = 8 * dtype.itemsize
    noise = rng.integers(0, 1 << 63, 4000, dtype=np.uint64) * 2 + rng.integers(0, 2, 4000, dtype=np.uint64)
    if dtype not in FLOATS:
        powers = (np.uint64(1) << rng.integers(0, bits, 4000, dtype=np.uint64)) + rng.integers(0, 3, 4000, np.uint64)
        ends = rng.integers(0, bits, 4000, dtype=np.uint64)
        tops = (noise >> ends) & ~((np.uint64(1) << rng.integers(0, 40, 4000, dtype=np.uint64)) - np.uint64(1))
        near = np.concatenate([powers - np.uint64(1), tops, tops + np.uint64(1), tops - np.uint64(1)])
        picked = np.concatenate([noise, noise >> ends, near, ~near])
        return picked.astype(f"u{dtype.itemsize}").view(dtype)
    special = [0.0, 1.0, 0.5, 1.5, 127.5, 128.0, 255.5, 32767.5, 65504.0, 65519.99, 65520.0, 65536.0, 2**31,
               2**31 - 1.0, 2**32, 2**63, 2**64, 2**53, 448.0, 464.0, 480.0, 57344.0, 61440.0, 240.0, 248.0, np.inf,
               np.nan, 1e300, 3.4e38, 1e-45, 7e-46, 5e-324, 2**-126, 2**-149, 2**-24, 2**-25, 2**-133,
               2**-134]  # fmt: skip
    with np.errstate(all="ignore"):
        small = [np.arange(1 << 8 * f.dtype.itemsize, dtype=f"u{f.dtype.itemsize}").view(f.dtype) for f in FORMATS
                 if f.dtype.itemsize <= 2]  # fmt: skip
        held = np.concatenate([np.array(special), *(s[:: max(1, s.size // 4096)].astype(np.float64) for s in small)])
        held = held.astype(dtype)
        middles = ((held[1:].astype(np.longdouble) + held[:-1]) / 2).astype(dtype)
        points = np.concatenate([held, middles])
        around = [points, np.nextafter(points, dtype.type(np.inf)), np.nextafter(points, dtype.type(-np.inf))]
        random = noise.astype(f"u{dtype.itemsize}").view(dtype)
        return np.concatenate([*around, *(-a for a in around), random])


def launch(kernel: Any, x: Array, targets: list[np.dtype[Any]], options: dict[str, Any]) -> list[Array]:
    """The source as each type."""
    count = len(kernel.arg_names) - 3
    outputs = [np.zeros(x.size, t) for t in (targets + [targets[0]] * count)[:count]]
    kernel[(weft.cdiv(x.size, 128),)](x, x.size, *outputs, BLOCK=128, **options)
    return outputs[: len(targets)]


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("source", [BOOL, *INTEGERS, *FLOATS], ids=lambda d: d.name)
@pytest.mark.thinned(2)
def test_to_every_type(source: np.dtype[Any], processor: str) -> None:
    x, options = values_of(source), PROCESSORS[processor]
    plain = [f.dtype for f in FORMATS if f.dtype not in SMALL]
    targets = plain if source in SMALL else [*INTEGERS, *plain, BOOL]  # fp8 goes through f32 to the others
    for target, got in zip(targets, launch(to_all, x, targets, options), strict=True):
        agree(got, wanted(x, target), x)
    if source in FLOATS:  # integers are refused
        for target, got in zip(SMALL, launch(to_small, x, SMALL, options), strict=True):
            agree(got, wanted(x, target), x)


@pytest.mark.parametrize("processor", PROCESSORS)
@pytest.mark.parametrize("source", [d for d in FLOATS if d not in SMALL], ids=lambda d: d.name)
@pytest.mark.thinned(2)
def test_toward_zero(source: np.dtype[Any], processor: str) -> None:
    x = values_of(source)
    targets = [t for t in FLOATS if t.itemsize < source.itemsize]
    for target, got in zip(targets, launch(narrow, x, targets, PROCESSORS[processor]), strict=True):
        agree(got, wanted(x, target, toward_zero=True), x)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_the_expectation(dtype: np.dtype[Any]) -> None:
    """The arithmetic above gives what ml_dtypes and NumPy give, where they do not saturate."""
    x = values_of(np.dtype(np.float32))
    with np.errstate(all="ignore"):
        theirs = exact(x.astype(dtype))
    mine = wanted(x, dtype)
    kept = np.abs(exact(x)) < FLOATS[dtype].largest
    np.testing.assert_array_equal(mine[kept], theirs[kept])
