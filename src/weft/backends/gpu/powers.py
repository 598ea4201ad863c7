"""x^y of f32 for a GPU: log2 x as a pair of floats, times y, and 2 to that; no arithmetic on doubles.

|x| = 2^e m with m in [sqrt(1/2), sqrt(2)), and log2 m = log2(e) (v + v^3 P(v^2)) with v = 2(m-1)/(m+1), which is had to
twice the precision (Muller, Elementary Functions, chapters 9 and 11): the logarithm is right to about 2^-31 of itself,
of which 128 times y's part can be seen in the result.
"""

from __future__ import annotations

from weft.backends.llvm.vecmath.coefficients import fitted
from weft.backends.llvm.vecmath.exponential import BASES
from weft.backends.llvm.vecmath.expr import X, fabs, fma, horner, intrinsic, rarely, where
from weft.backends.llvm.vecmath.power import parity, power_cases

from .approximate_instructions import rcp

_LOG2_E = (1.4426950216293335, 1.925963033500149e-08)
_SQRT_HALF = 0x3F3504F3
_GREATEST = 0x7F7FFFFF
_EXP2 = BASES["exp2", "float"]


def binary_exponent(bits: X) -> X:
    """The field of the exponent of m where x = m times what it stands for, and m lies in [sqrt(1/2), sqrt(2))."""
    return (bits - _SQRT_HALF) & -(1 << 23)


def _log2(a: X) -> tuple[X, X]:
    """log2 of a > 0 as the sum of two floats, the second at most 2^-6 of the first."""
    tiny = a < 2.0**-126
    bits = where(tiny, a * 2.0**24, a).bits()
    field = binary_exponent(bits)
    e = fma(field.to_float("float"), 2.0**-23, where(tiny, a.const(-24.0), a.const(0.0)))
    m = (bits - field).as_float()
    f = m - 1.0
    r = rcp(m + 1.0)
    v = (f + f) * r
    rest = f - v
    v_low = fma(-f, v, rest + rest) * r  # what is missing from v: (2f - v (f + 2)) / (f + 2)
    z = v * v
    high = v * _LOG2_E[0]
    low = fma(v, _LOG2_E[0], -high)
    low = fma(v_low, _LOG2_E[0], fma(v, _LOG2_E[1], low))
    low = fma(v * z, horner(z, fitted("log2.pair.float")), low)
    total = e + high
    return total, high - (total - e) + low


def _exp2(t: X, low: X) -> X:
    """2^(t + low), rounded once where it is denormal; low is small where |t| < 160."""
    magic = 1.5 * 2.0**23
    bounded = intrinsic("minnum", intrinsic("maxnum", t, -160.0), 160.0)
    shifted = bounded + magic
    r = (bounded - (shifted - magic)) + low
    r = intrinsic("minnum", intrinsic("maxnum", r, -1.0), 1.0)
    p = fma(r, horner(r, (_EXP2.linear, *fitted("exp2.float"))), 1.0)
    n = shifted.bits() - 0x4B400000
    half = n >> 1
    return p * _power_of_two(half) * _power_of_two(n - half)


def _power_of_two(n: X) -> X:
    return ((n << 23) + (127 << 23)).as_float()


def power(x: X, y: X) -> X:
    """x^y, with C99's special cases."""
    bounded = intrinsic("minnum", intrinsic("maxnum", y, -(2.0**40)), 2.0**40)  # |log2 x| is 0 or above 2^-25
    high, low = _log2(fabs(x))
    product = high * bounded
    rest = fma(low, bounded, fma(high, bounded, -product))
    t = product + rest
    size = _exp2(t, rest - (t - product))
    usual = (x.bits() - 1).ult(_GREATEST) & (fabs(y) < float("inf"))
    (result,) = rarely(~usual, size, lambda: power_cases(x, y, size, *parity(y)))
    return result
