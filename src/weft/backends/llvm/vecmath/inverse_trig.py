"""asin, acos, atan, atan2.

atan takes one division: a quotient t with |t| <= tan(pi/8) is made from the argument's numerator and denominator and
the angle 0, pi/4 or pi/2 that belongs to it is added in two parts. asin beyond 1/2 is pi/2 - 2 asin(sqrt((1-x)/2)),
where 1-x is exact (Muller, Elementary Functions, chapter 11; Cody & Waite).
"""

from __future__ import annotations

from .coefficients import fitted
from .expr import X, copysign, fabs, fma, horner, sqrt, where
from .registry import define
from .simple import BOTH

# pi/2 in two parts of each type
_HALF_PI = {
    "float": (1.5707963705062866, -4.371139000186241e-08),
    "double": (1.5707963267948966, 6.123233995736766e-17),
}
_TAN_EIGHTH = 0.41421356237309503


def _angle(y: X, x: X) -> tuple[X, X]:
    """atan(y/x) in two parts for y, x >= 0, not both 0 or infinite."""
    high, low = _HALF_PI[x.elem]
    steep, flat = y * _TAN_EIGHTH > x, y < x * _TAN_EIGHTH
    top = where(flat, y, where(steep, -x, y - x))
    under = where(flat, x, where(steep, y, y + x))
    base = where(flat, x.const(0.0), where(steep, x.const(high), x.const(high / 2)))
    base_low = where(flat, x.const(0.0), where(steep, x.const(low), x.const(low / 2)))
    t = top / under
    z = t * t
    rest = fma(t * z, horner(z, fitted(f"atan.{x.elem}")), base_low)
    s = base + t
    return s, (t - (s - base)) + rest


@define("atan", BOTH)
def atan(x: X) -> X:
    a = fabs(x)
    big = a > 2.0**60
    high, low = _angle(where(big, 2.0**60, a), x.const(1.0))
    return where(x.isnan(), x, copysign(high + low, x))


@define("atan2", BOTH, "T T")
def atan2(y: X, x: X) -> X:
    inf = float("inf")
    ax, ay = fabs(x), fabs(y)
    # infinities: of both the quotient is 1; of one, 0 or beyond any bound; two zeros: 0/1
    any_inf = (ax == inf) | (ay == inf)
    zeros = (ax == 0.0) & (ay == 0.0)
    px = where(any_inf, where(ax == inf, x.const(1.0), x.const(0.0)), where(zeros, 1.0, ax))
    py = where(any_inf, where(ay == inf, x.const(1.0), x.const(0.0)), ay)
    # away from the ends of the range, where products with constants would lose bits
    small = (px < 2.0**-60) & (py < 2.0**-60)
    scale = where((px > 2.0**100) | (py > 2.0**100), x.const(2.0**-30), where(small, x.const(2.0**60), x.const(1.0)))
    high, low = _angle(py * scale, px * scale)
    pi, pi_low = (2 * part for part in _HALF_PI[x.elem])
    s = pi - high
    behind = s + (((pi - s) - high) + (pi_low - low))
    angle = where(x.bits() < 0, behind, high + low)
    return where(x.unordered(y), x + y, copysign(angle, y))


def _arc(x: X) -> tuple[X, X, X, X]:
    """(is |x| > 1/2, asin of |x| or of s as value and correction, s): s = sqrt((1-|x|)/2)."""
    a = fabs(x)
    far = a > 0.5
    w = (1.0 - a) * 0.5
    s = sqrt(w)
    t = where(far, s, a)
    z = where(far, w, a * a)
    return far, t, t * z * horner(z, fitted(f"asin.{x.elem}")), z


def _root_error(far: X, s: X, w: X) -> X:
    """What is missing from s to the root of w."""
    return where(far & (s > 0.0), fma(-s, s, w) / (s + s), 0.0)


@define("asin", BOTH)
def asin(x: X) -> X:
    far, t, rest, z = _arc(x)
    high, low = _HALF_PI[x.elem]
    small = t + rest
    tail = 2.0 * (rest + _root_error(far, t, z)) - low
    first = high - 2.0 * t
    large = first + (((high - first) - 2.0 * t) - tail)
    return copysign(where(far, large, small), x)


@define("acos", BOTH)
def acos(x: X) -> X:
    far, t, rest, z = _arc(x)
    high, low = _HALF_PI[x.elem]
    negative = x.bits() < 0
    tail = rest + _root_error(far, t, z)
    near_one = 2.0 * (t + tail)
    first = 2.0 * high - 2.0 * t
    near_minus_one = first + (((2.0 * high - first) - 2.0 * t) + 2.0 * (low - tail))
    signed, signed_rest = copysign(t, x), copysign(rest, x)
    middle = high - signed
    inner = middle + (((high - middle) - signed) + (low - signed_rest))
    return where(far, where(negative, near_minus_one, near_one), inner)
