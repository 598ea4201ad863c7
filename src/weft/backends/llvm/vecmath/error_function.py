"""The error function and its relatives: erf, erfc, erfcx, their inverses, and the normal distribution.

float erf, the heart of gelu, has two forms. With AVX-512: sixteen pieces of equal width, each a polynomial of degree
5 around the piece's middle, whose coefficients are read from registers by the piece's number; a dozen operations for
sixteen elements. Elsewhere: a P(a^2) below 1 and 1 - 2^-(a Q(a)) above.

Doubles: a polynomial below 1; beyond, exp(-a^2) erfcx(a), where a^2 is kept as a pair and (1+2a) erfcx(a) is one
polynomial in (a-4)/(a+4) for the whole half line (Shepherd & Laframboise, Math. Comp. 36, 1981). The inverses are
polynomials in x^2 in the middle and in sqrt(-log p) on small intervals in the tails. Floats other than erf are done
as doubles.
"""

from __future__ import annotations

from . import dd
from .coefficients import fitted
from .exponential import exponential
from .expr import X, at_least, at_most, copysign, fabs, fma, horner, sqrt, where
from .logarithm import log_double
from .piecewise import piecewise
from .registry import define, invoke
from .scaling import lookup16, round_to_integer, wide_scale

_STEP = 0.25390625


@define("erf", "float")
def erf_float(x: X) -> X:
    a = at_most(fabs(x), 3.93)
    if wide_scale(x) and x.type.lanes % 16 == 0:
        n, bits = round_to_integer(a, 1 / _STEP)
        r = fma(n, -_STEP, a)
        first = (0.0, *fitted("erf.float.piece0"))
        pieces = [first, *(fitted(f"erf.float.piece{k}") for k in range(1, 16))]  # erf(k _STEP + r) = c0 + c1 r + ...
        y = horner(r, [lookup16(bits, list(column)) for column in zip(*pieces)])
    else:
        z = at_most(a * a, 1.0)
        small = a * horner(z, fitted("erf.float.small"))
        y = where(a < 1.0, small, 1.0 - exponential("exp2", -(a * horner(a, fitted("erf.float.large"))), normal=True))
    return copysign(y, x)


_INF = float("inf")
_NAN = float("nan")
_SQRT_HALF = 0.7071067811865476
_SQRT_TWO = 1.4142135623730951


def _scaled_tail(a: X) -> X:
    """exp(a^2) erfc(a) for a >= 0."""
    return piecewise("erfcx", (a - 4.0) / (a + 4.0)) / fma(a, 2.0, 1.0)


def _tail(a: X, square: dd.Pair, factor: float = 1.0) -> X:
    """factor * erfc(a) for a >= 0 with a^2 given; the exponential is scaled up until the end, since it may be
    denormal.
    """
    e = exponential("exp", -square[0], 200, low=-square[1])
    return e * _scaled_tail(a) * (factor * 2.0**-200)


def _small_erf(x: X) -> X:
    return x * piecewise("erf", at_most(x * x, 1.0))


@define("erf", "double")
def erf_double(x: X) -> X:
    a = at_most(fabs(x), 6.5)
    far = 1.0 - exponential("exp", -(a * a), normal=True) * _scaled_tail(a)
    return where(a < 1.0, _small_erf(x), copysign(far, x))


@define("erfc", "double", long=True)
def erfc(x: X) -> X:
    a = at_most(fabs(x), 30.0)
    y = _tail(a, dd.two_prod(a, a))
    y = where(x < 0.0, 2.0 - y, y)
    return where(fabs(x) < 0.5, 1.0 - _small_erf(x), y)


@define("erfcx", "double", long=True)
def erfcx(x: X) -> X:
    """exp(x^2) erfc(x): for negative x, 2 exp(x^2) less the value at -x."""
    a = fabs(x)
    y = _scaled_tail(at_most(a, 1e150))
    y = where(a > 1e150, 0.5641895835477563 / a, y)
    b = at_most(a, 30.0)
    high, low = dd.two_prod(b, b)
    grown = exponential("exp", high, 1, low=low)
    middle = exponential("exp", high) * (1.0 - _small_erf(x))
    return where(a < 0.5, middle, where(x < 0.0, grown - y, y))


def _inverse_tail(p: X) -> X:
    """y with erfc(y) = p, for 0 < p <= 1/2."""
    w = sqrt(-log_double(p))
    return w * piecewise("erfcinv", w)


def _inverse_middle(x: X) -> X:
    """y with erf(y) = x, for |x| <= 1/2."""
    return x * piecewise("erfinv", at_most(x * x, 0.25))


@define("erfinv", "double", long=True)
def erfinv(x: X) -> X:
    a = fabs(x)
    p = 1.0 - a
    y = copysign(_inverse_tail(where((p > 0.0) & (p <= 0.5), p, 0.25)), x)
    y = where(a <= 0.5, _inverse_middle(x), y)
    y = where(a == 1.0, copysign(x.const(_INF), x), y)
    return where(a <= 1.0, y, _NAN)


@define("erfcinv", "double", long=True)
def erfcinv(x: X) -> X:
    p = where(x > 1.0, 2.0 - x, x)
    y = _inverse_tail(where((p > 0.0) & (p <= 0.5), p, 0.25))
    y = where(x > 1.0, -y, y)
    y = where(p >= 0.5, _inverse_middle(1.0 - x), y)
    y = where(p == 0.0, where(x > 1.0, -_INF, x.const(_INF)), y)
    return where((x >= 0.0) & (x <= 2.0), y, _NAN)


@define("normcdf", "double", long=True)
def normcdf(x: X) -> X:
    """erfc(-x/sqrt 2)/2; the square of x/sqrt 2 is x^2/2 exactly, which the far tail needs."""
    bounded = at_least(at_most(x, 40.0), -40.0)
    high, low = dd.two_prod(bounded, bounded)
    y = _tail(fabs(bounded) * _SQRT_HALF, (high * 0.5, low * 0.5), 0.5)
    y = where(x > 0.0, 1.0 - y, y)
    return where(fabs(bounded) < 0.5, fma(_small_erf(bounded * _SQRT_HALF), 0.5, 0.5), y)


define("normcdfinv", "double", long=True)(lambda x: erfcinv(x + x) * -_SQRT_TWO)  # -sqrt 2 erfcinv(2x)


def _through_double(name: str) -> None:
    define(name, "float", long=True)(lambda x: invoke(name, x.widen()).narrow())


for _name in ("erfc", "erfcx", "erfinv", "erfcinv", "normcdf", "normcdfinv"):
    _through_double(_name)
