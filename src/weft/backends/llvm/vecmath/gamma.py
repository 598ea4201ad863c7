"""The gamma function and its logarithm. Doubles; floats are done as doubles.

From 8 on, Stirling's series (Abramowitz & Stegun 6.1.40), its large terms added as pairs; below, polynomials on
intervals of an eighth: of gamma itself, and of lgamma(x)/((x-1)(x-2)), which keeps the zeros at 1 and 2. Negative
arguments by reflection (6.1.17); near the zeros that lgamma has there its error is absolute, as CUDA's is.
"""

from __future__ import annotations

from . import dd
from .dd import Pair
from .exponential import exponential
from .expr import X, at_most, copysign, fabs, floor, where
from .logarithm import log_double, log_pair
from .piecewise import piecewise
from .registry import define, invoke
from .trig import sin_cos_pi

_INF = float("inf")
_NAN = float("nan")
_PI = 3.141592653589793
_LOG_PI = 1.1447298858494002
_HALF_LOG_TWO_PI = (0.9189385332046728, -3.8782941580672414e-17)


def _stirling(x: X) -> Pair:
    """lgamma(x) for x >= 8: (x - 1/2) log x - x + log(2 pi)/2 + rest/x."""
    rest = piecewise("stirling", 1.0 / (x * x)) / x
    total = dd.mul(log_pair(x), dd.two_sum(x, -0.5))
    total = dd.add_single(total, -x)
    total = dd.add(total, dd.constant(x, _HALF_LOG_TWO_PI))
    return dd.add_single(total, rest)


def _sine_pi(x: X) -> X:
    """|sin(pi x)|"""
    n, sine, cosine = sin_cos_pi(x)
    return fabs(where((n & 1) != 0, cosine, sine))


@define("lgamma", "double", long=True)
def lgamma(x: X) -> X:
    a = fabs(x)
    regular = where((a > 0.0) & (a < 1e305), a, 3.0)
    tiny = regular < 0.5
    inside = where(tiny, regular + 1.0, at_most(regular, 8.0))
    near = piecewise("lgamma", inside) * ((inside - 1.0) * (inside - 2.0))
    near = where(tiny, near - log_double(regular), near)
    high, _ = _stirling(where(regular < 8.0, 8.0, regular))
    y = where(regular < 8.0, near, high)
    reflected = _LOG_PI - log_double(regular * _sine_pi(regular)) - y
    reflected = where(regular < 1e-17, -log_double(regular), reflected)
    y = where(x < 0.0, reflected, y)
    pole = (x <= 0.0) & (floor(x) == x)
    y = where(a >= 1e305, a * (log_double(a) - 1.0), y)  # where the pairs would overflow early
    return where(x.isnan(), x, where(pole, _INF, y))


@define("tgamma", "double", long=True)
def tgamma(x: X) -> X:
    a = fabs(x)
    negative = x < 0.0
    regular = where((a > 0.0) & (a < 200.0), a, 3.0)
    tiny = regular < 1.0
    inside = where(tiny, regular + 1.0, at_most(regular, 8.0))
    near = piecewise("tgamma", inside)
    near = where(tiny, near / regular, near)
    high, low = _stirling(where(regular < 8.0, 8.0, regular))
    # where negative, 1/gamma(a) is wanted: the exponential of the opposite, scaled up since it may be denormal
    grown = exponential("exp", where(negative, -high, high), 100, low=where(negative, -low, low))
    sine = regular * _sine_pi(regular)
    reflected = where(regular < 8.0, _PI / (near * sine), grown * (_PI / sine) * 2.0**-100)
    positive = where(regular < 8.0, near, exponential("exp", high, low=low))
    odd = floor(x * 0.5) * 2.0 != floor(x)
    y = where(negative, where(odd, -reflected, reflected), positive)
    y = where(a < 1e-17, 1.0 / x, y)
    y = where(a >= 200.0, where(negative, where(odd, -0.0, y.const(0.0)), y.const(_INF)), y)
    pole = negative & (floor(x) == x)
    y = where(pole | (x == -_INF), _NAN, y)
    return where(x.isnan(), x, where(a == 0.0, copysign(x.const(_INF), x), y))


def _lgamma_for_float(x: X) -> X:
    """lgamma(x) of a double that is a float, to more bits than a float has: without pairs."""
    a = fabs(x)
    regular = where((a > 0.0) & (a < _INF), a, 3.0)
    tiny = regular < 0.5
    inside = where(tiny, regular + 1.0, at_most(regular, 8.0))
    log = log_double(regular)
    near = piecewise("lgamma", inside) * ((inside - 1.0) * (inside - 2.0))
    near = where(tiny, near - log, near)
    outside = where(regular < 8.0, 8.0, regular)
    rest = piecewise("stirling", 1.0 / (outside * outside)) / outside
    far = (outside - 0.5) * log - outside + (_HALF_LOG_TWO_PI[0] + rest)
    y = where(regular < 8.0, near, far)
    reflected = _LOG_PI - log_double(regular * _sine_pi(regular)) - y
    reflected = where(regular < 1e-17, -log, reflected)
    y = where(x < 0.0, reflected, y)
    y = where(a == _INF, _INF, y)
    pole = (x <= 0.0) & (floor(x) == x)
    return where(x.isnan(), x, where(pole, _INF, y))


define("lgamma", "float", long=True)(lambda x: _lgamma_for_float(x.widen()).narrow())
define("tgamma", "float", long=True)(lambda x: invoke("tgamma", x.widen()).narrow())
