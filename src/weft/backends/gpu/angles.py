"""sin, cos, tan and their inverses on f32 for a GPU: few instructions and few registers, no call and no local memory.

    sin, cos    as on the CPU (vecmath/trig.py); what differs is how large arguments are reduced
    tan         r + r^3 P(r^2), or -1 over it
    asin, acos  as on the CPU, by an approximate root
    atan2       smaller/larger by `rcp.approx` and a step of Newton's, then t + t^3 P(t^2)

Large arguments: x = m 2^q, m of 24 bits. Of the binary digits of 2/pi only 96 matter, those of weight 2^(1-q) and below
(Payne and Hanek; Muller, Elementary Functions, chapter 11): m times these, of which the 64 upper bits are kept, are
two bits of quarter turns and 62 of the fraction, of which at most 30 cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

from weft.backends.llvm.vecmath.coefficients import fitted
from weft.backends.llvm.vecmath.expr import X, copysign, fabs, flip_sign, fma, horner, intrinsic, rarely, table, where
from weft.backends.llvm.vecmath.reduction import (
    FLOAT_LIMIT,
    PI_HALF,
    funnel,
    reduce_moderate,
    two_over_pi_words,
)
from weft.backends.llvm.vecmath.trig import by_quadrant

from .approximate_instructions import rcp, rsqrt, sqrt

_HALF_PI = (1.5707963705062866, -4.371139000186241e-08)
_SIGN = -(1 << 31)


def _reduced(x: X) -> tuple[X, X]:
    """(n, right in its low bits; r) with x = n pi/2 + r and |r| <= pi/4."""
    n, r = reduce_moderate(x)
    size = fabs(x)
    n, r = rarely((size >= FLOAT_LIMIT) & (size < float("inf")), (n, r), lambda: _reduced_large(x))
    return n, r


@lru_cache(maxsize=1)
def _words() -> tuple[int, ...]:
    """32 zero bits, then the digits of 2/pi as far as f32 needs them, in signed words."""
    halves = [half for word in two_over_pi_words()[:6] for half in ((word >> 32) & 0xFFFFFFFF, word & 0xFFFFFFFF)]
    return tuple(w - (1 << 32) if w >> 31 else w for w in halves[1:9])


def _reduced_large(x: X) -> tuple[X, X]:
    bits = x.bits()
    m = ((bits & 0x7FFFFF) | 0x800000).cast("zext", "i64")
    start = (bits.lshr(23) & 0xFF) - 120  # the digit of weight 2 in 2^q (2/pi), q = exponent - 150; 32 zeros before
    index, shift = start.lshr(5), start & 31
    words = [table("two_over_pi_f32", "i32", _words(), index + i) for i in range(4)]
    window = [funnel(a, b, shift).cast("zext", "i64") for a, b in pairwise(words)]
    total = ((m * window[0]) << 32) + (m * window[1] + (m * window[2]).lshr(32))
    n = (total + (1 << 61)) >> 62
    r = ((total - (n << 62)).to_float("double") * (PI_HALF[0] * 2.0**-62)).narrow()
    n = n.cast("trunc", "i32")
    negative = bits >> 31
    return (n ^ negative) - negative, flip_sign(r, bits)


def sin(x: X) -> X:
    """The sine; that of -0 is -0."""
    n, r = _reduced(x)
    return where(x == 0.0, x, by_quadrant(n, r, 0))


def cos(x: X) -> X:
    """The cosine."""
    n, r = _reduced(x)
    return by_quadrant(n, r, 1)


def tan(x: X) -> X:
    """The tangent; that of -0 is -0."""
    n, r = _reduced(x)
    z = r * r
    t = fma(r * z, horner(z, fitted("tan.float")), r)
    inverse = rcp(t)
    inverse = fma(fma(-t, inverse, 1.0), inverse, inverse)
    return where(x == 0.0, x, where((n & 1) != 0, -inverse, t))


def _arc(x: X, root: Callable[[X], X]) -> tuple[X, X]:
    """(is |x| > 1/2, asin of |x| or there of the root of (1-|x|)/2)."""
    a = fabs(x)
    far = a > 0.5
    w = (1.0 - a) * 0.5
    t = where(far, root(w), a)
    z = where(far, w, a * a)
    return far, fma(t * z, horner(z, fitted("asin.float")), t)


def _precise_root(w: X) -> X:
    r = rsqrt(w)
    s = w * r
    return where(w == 0.0, 0.0, fma(fma(-s, s, w), r * 0.5, s))


def asin(x: X) -> X:
    """The arc sine."""
    far, small = _arc(x, _precise_root)  # twice the root is up to twice the result
    high, low = _HALF_PI
    return copysign(where(far, fma(small, -2.0, low) + high, small), x)


def acos(x: X) -> X:
    """The arc cosine: 2 t, pi - 2 t or pi/2 -+ t, pi in two parts."""
    far, t = _arc(x, sqrt)
    high, low = _HALF_PI
    negative = x.bits() < 0
    whole = where(negative, x.const(2 * high), x.const(0.0))
    base = where(far, whole, x.const(high))
    times = flip_sign(where(far, x.const(2.0), x.const(-1.0)), x)
    return base + fma(times, t, base * (low / high))


def _in_range(a: X, low: float, high: float) -> X:
    """Are these bits of a number >= 0 those of one in [low, high)? Both are powers of two."""
    first, end = (_power_bits(bound) for bound in (low, high))
    return (a - first).ult(end - first)


def _power_bits(x: float) -> int:
    mantissa, sign = x.hex().split("p")
    assert mantissa == "0x1.0000000000000"
    return (int(sign) + 127) << 23


def _ratio(small: X, large: X) -> X:
    """small/large, both finite and large away from the ends of the range."""
    r = rcp(large)
    t = small * r
    return fma(fma(-t, large, small), r, t)


def _ratio_of_any(small: X, large: X) -> X:
    """small/large for 0 <= small <= large; of two zeros 0, of two infinities 1."""
    inf = float("inf")
    scale = where(large > 1.0, large.const(2.0**-30), large.const(2.0**90))
    t = _ratio(small * scale, large * scale)
    t = where(large == inf, where(small == inf, small.const(1.0), small.const(0.0)), t)
    return where(large == 0.0, 0.0, where(large.isnan(), large, t))


def atan2(y: X, x: X) -> X:
    """The angle of (x, y), from -pi to pi; signs of zeros count, as in C."""
    ax, ay = x.bits() & ~_SIGN, y.bits() & ~_SIGN
    large, small = intrinsic("umax", ax, ay), intrinsic("umin", ax, ay)  # what is NaN is the largest
    usual = _in_range(large, 2.0**-90, 2.0**100)
    a, b = small.as_float(), large.as_float()
    (t,) = rarely(~usual, _ratio(a, b), lambda: _ratio_of_any(a, b))
    z = t * t
    angle = fma(t * z, horner(z, fitted("atan.float.one")), t)
    steep, behind = ax.ult(ay), x.bits() < 0
    high, low = _HALF_PI
    flat = where(behind, x.const(2 * high), x.const(0.0))
    base = where(steep, x.const(high), flat)
    turned = where(steep ^ behind, -angle, angle)
    return copysign(base + fma(base, low / high, turned), y)


def atan(x: X) -> X:
    """The arc tangent."""
    a = fabs(x)
    large = a > 1.0
    t = where(large, rcp(a), a)
    angle = fma(t * (t * t), horner(t * t, fitted("atan.float.one")), t)
    high, low = _HALF_PI
    return copysign(where(large, high + (low - angle), angle), x)


ANGLES: dict[str, Callable[..., X]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
}
"""Functions of f32, by name."""
