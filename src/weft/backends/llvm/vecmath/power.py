"""Powers, roots, norms and remainders.

pow of doubles: the logarithm to 2^-66 (logarithm.log_pair), times y as a pair, then exp with the pair's low part. pow
of floats does the same in double arithmetic of ordinary precision. Roots: an approximation improved by Newton's or
Halley's iteration. Remainders are exact: each round takes up to 52 bits of the quotient away by one fma.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import dd
from .coefficients import fitted
from .exponential import exponential
from .expr import (
    X,
    at_least,
    at_most,
    copysign,
    estrin,
    fabs,
    floor,
    fma,
    horner,
    sqrt,
    trunc,
    where,
    while_any,
)
from .logarithm import log_pair, split_exponent
from .registry import define
from .scaling import power_of_two, wide_scale
from .simple import BOTH, exponent_and_mantissa

_INF = float("inf")
_NAN = float("nan")


def _pow_positive(x: X, y: X) -> X:
    """x^y for positive finite x and any y but NaN, in double to about 2^-28 (`x` a widened float)."""
    e, m = split_exponent(x)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    logarithm = fma(s, estrin(z, fitted("log2.pow")), e)
    y = at_least(at_most(y, 2.0**40), -(2.0**40))  # |log2 x| is 0 or above 2^-25
    t = at_least(at_most(logarithm * y, 200.0), -200.0)
    magic = 1.5 * 2.0**52
    shifted = t + magic
    r = t - (shifted - magic)
    return horner(r, fitted("exp2.pow")) * ((shifted.bits() + 1023) << 52).as_float()


def _pow_pair(x: X, y: X) -> X:
    """x^y for positive finite double x and any y but NaN."""
    y = at_least(at_most(y, 2.0**66), -(2.0**66))
    high, low = log_pair(x)
    t, rest = dd.two_prod(high, y)
    rest = fma(low, y, rest)
    t, rest = dd.quick_two_sum(t, rest)
    inside = fabs(t) < 1000.0
    return exponential("exp", t, low=where(inside, rest, 0.0))


def power_cases(x: X, y: X, core: X, odd: X, whole: X) -> X:
    """C99's special cases around `core`, which is |x|^y for finite |x| other than 0."""
    a = fabs(x)
    vanishes = where(a == 0.0, y > 0.0, y < 0.0)
    ends = where(vanishes, x.const(0.0), x.const(_INF))
    size = where((a == 0.0) | (a == _INF), ends, core)
    negative = x.bits() < 0
    result = where(negative & odd, -size, size)
    result = where((x < 0.0) & (a < _INF) & ~whole, _NAN, result)
    result = where(x.unordered(y), x + y, result)
    return where((x == 1.0) | (y == 0.0), 1.0, result)


def parity(y: X) -> tuple[X, X]:
    """(odd integer?, integer?)"""
    half = y * 0.5
    whole = trunc(y) == y
    return whole & (trunc(half) != half), whole


def _sane(x: X) -> X:
    """|x| with 1 in place of 0, infinity and NaN."""
    a = fabs(x)
    return where((a > 0.0) & (a < _INF), a, 1.0)


@define("pow", "float", "T T")
def pow_float(x: X, y: X) -> X:
    odd, whole = parity(y)
    bounded = where(y.isnan(), 0.0, y)
    core = _pow_positive(_sane(x).widen(), bounded.widen()).narrow()
    return power_cases(x, y, core, odd, whole)


@define("pow", "double", "T T", long=True)
def pow_double(x: X, y: X) -> X:
    odd, whole = parity(y)
    return power_cases(x, y, _pow_pair(_sane(x), where(y.isnan(), 0.0, y)), odd, whole)


@define("powi", "float", "T i32")
def powi_float(x: X, n: X) -> X:
    y = n.to_float("double")
    odd = (n & 1) != 0
    core = _pow_positive(_sane(x).widen(), y).narrow()
    return power_cases(x, n.to_float("float"), core, odd, n == n)


@define("powi", "double", "T i32", long=True)
def powi_double(x: X, n: X) -> X:
    y = n.to_float("double")
    return power_cases(x, y, _pow_pair(_sane(x), y), (n & 1) != 0, n == n)


# -- roots ------------------------------------------------------------------------------------------------------------


@define("rsqrt", "float")
def rsqrt_float(x: X) -> X:
    """With AVX-512 its 14-bit estimate and one step of third order; else by root and division."""
    if not (wide_scale(x) and x.type.lanes % 16 == 0):
        return 1.0 / sqrt(x)
    y = _estimate(x)
    e = fma(-(x * y), y, 1.0)
    better = fma(y * e, fma(e, 0.375, 0.5), y)
    return where(fabs(e) < 0.5, better, y)


def _estimate(x: X) -> X:
    f, lanes = x.f, x.type.lanes
    if lanes > 16:
        halves = [X(f, f.shuffle(x.v, None, range(i, i + lanes // 2))) for i in (0, lanes // 2)]
        low, high = (_estimate(h) for h in halves)
        return X(f, f.shuffle(low.v, high.v, range(lanes)))
    name = "llvm.x86.avx512.rsqrt14.ps.512"
    f.module.declarations.setdefault(name, f"declare {x.type} @{name}({x.type}, {x.type}, i16)")
    return X(f, f.emit(x.type, f"call {x.type} @{name}({x.v}, {x.type} zeroinitializer, i16 -1)"))


define("rsqrt", "double")(lambda x: 1.0 / sqrt(x))
define("rsqrt_rn", "float")(lambda x: (1.0 / sqrt(x.widen())).narrow())


def _cube_root(x: X, steps: int) -> tuple[X, X, X]:
    """(c, m, 2^k): |x| = 2^(3k) m with m in [0.7, 5.7), c near the cube root of m; double."""
    a = _sane(x)
    e, m = split_exponent(a)
    k = floor(e * (1.0 / 3.0) + 0.0001)
    m = m * power_of_two((e - 3.0 * k).to_int("i64"), "double")
    c = horner(m, fitted("cbrt.start"))
    for _ in range(steps):
        cube = c * c * c
        c = c * (cube + (m + m)) / (cube + cube + m)
    return c, m, power_of_two(k.to_int("i64"), "double")


@define("cbrt", "double")
def cbrt(x: X) -> X:
    c, m, scale = _cube_root(x, 2)
    square, square_low = dd.two_prod(c, c)
    residue = fma(-c, square, m) - c * square_low
    c = fma(residue, 1.0 / (3.0 * square), c)
    finite = (x != 0.0) & (fabs(x) < _INF)
    return where(finite, copysign(c * scale, x), x)


define("rcbrt", "double")(lambda x: 1.0 / cbrt(x))


@define("cbrt", "float")
def cbrt_float(x: X) -> X:
    c, _, scale = _cube_root(x.widen(), 1)
    finite = (x != 0.0) & (fabs(x) < _INF)
    return where(finite, copysign((c * scale).narrow(), x), x)


@define("rcbrt", "float")
def rcbrt_float(x: X) -> X:
    c, _, scale = _cube_root(x.widen(), 1)
    finite = (x != 0.0) & (fabs(x) < _INF)
    return where(finite, copysign((1.0 / (c * scale)).narrow(), x), 1.0 / x)


# -- norms ------------------------------------------------------------------------------------------------------------


def _norm(invert: bool, *parts: X) -> X:
    """The root of the sum of squares, or its inverse; infinite if any part is."""
    if parts[0].elem == "float":
        wide = [p.widen() for p in parts]
        total = wide[0] * wide[0]
        for w in wide[1:]:
            total = fma(w, w, total)
        root = sqrt(total)
        y = (1.0 / root if invert else root).narrow()
    else:
        size = fabs(parts[0])
        for p in parts[1:]:
            size = at_least(size, fabs(p))
        top = at_most(at_least(size, 2.0**-1000), 2.0**1000)
        exponent = top.bits() & (0x7FF << 52)
        down = (exponent.const(2046 << 52) - exponent).as_float()
        total = parts[0].const(0.0)
        for p in parts:
            total = fma(p * down, p * down, total)
        root = sqrt(total)
        y = down / root if invert else root * exponent.as_float()
    infinite = fabs(parts[0]) == _INF
    for p in parts[1:]:
        infinite = infinite | (fabs(p) == _INF)
    return where(infinite, 0.0 if invert else _INF, y)


def _define_norms() -> None:
    for name, count in (("hypot", 2), ("norm3d", 3), ("norm4d", 4)):
        inverse = {"hypot": "rhypot"}.get(name, "r" + name)
        args = " ".join("T" * count)
        define(name, BOTH, args)(lambda *parts: _norm(False, *parts))
        define(inverse, BOTH, args)(lambda *parts: _norm(True, *parts))


_define_norms()


# -- remainders -------------------------------------------------------------------------------------------------------


def _remainder_of(a: X, b: X) -> X:
    """a mod b for finite double a >= 0, b > 0: while a >= b, take q*b 2^k away, q the truncated quotient of at most 52
    bits.
    """
    exponent, _ = exponent_and_mantissa(b)

    def step(state: Sequence[X]) -> Sequence[X]:
        (r,) = state
        # b 2^k so near below r that the quotient has at most 52 bits; a denormal r is less than 2^52 b
        distance = r.bits().lshr(52) - 1023 - exponent
        k = where(distance > 52, distance - 50, 0)
        half = k >> 1
        quarter = half >> 1
        scaled = (
            b
            * power_of_two(half, "double")
            * power_of_two(quarter, "double")
            * power_of_two(k - half - quarter, "double")
        )
        q = trunc(r / scaled)
        left = fma(-q, scaled, r)
        return [where(left < 0.0, left + scaled, left)]

    return while_any([a], lambda state: state[0] >= b, step)[0]


def _usable(x: X, y: X) -> X:
    return (fabs(x) < _INF) & (y != 0.0) & ~y.isnan()


@define("fmod", "double", "T T", long=True)
def fmod(x: X, y: X) -> X:
    usable = _usable(x, y)
    a, b = where(usable, fabs(x), 0.0), where(usable, at_most(fabs(y), 1.7976931348623157e308), 1.0)
    r = _remainder_of(a, b)
    r = where(fabs(y) == _INF, fabs(x), r)
    return where(usable, copysign(r, x), _NAN)


@define("remainder", "double", "T T", long=True)
def remainder(x: X, y: X) -> X:
    """From the remainder by 2|y|, at most twice |y| is taken away: halves go to even quotients."""
    usable = _usable(x, y)
    a, b = where(usable, fabs(x), 0.0), where(usable, at_most(fabs(y), 1.7976931348623157e308), 1.0)
    double_fits = b < 2.0**1023
    r = where(double_fits, _remainder_of(where(double_fits, a, 0.0), where(double_fits, b + b, 1.0)), a)
    small = b < 1.0  # doubled there, since halves of denormals are inexact; halved elsewhere, since doubles overflow
    half = where(small, b, b * 0.5)
    once = where(small, r + r, r) > half
    r = where(once, r - b, r)
    r = where(once & (where(small, r + r, r) >= half), r - b, r)
    r = where(fabs(y) == _INF, fabs(x), r)
    signed = (r.bits() ^ (x.bits() & -(1 << 63))).as_float()
    return where(usable, where(r == 0.0, copysign(r, x), signed), _NAN)


define("fmod", "float", "T T", long=True)(lambda x, y: fmod(x.widen(), y.widen()).narrow())
define("remainder", "float", "T T", long=True)(lambda x, y: remainder(x.widen(), y.widen()).narrow())
