"""log, log2, log10, log1p, and the inverse hyperbolic functions.

x = 2^e m with m in [sqrt(1/2), sqrt(2)); denormals are scaled first. float: log_b m is a polynomial in f = m - 1.
double: log m = 2 artanh(s), s = f/(2+f), as a series in s^2 (Muller, Elementary Functions, chapter 4; the way of
fdlibm's logarithm), arranged so that f itself enters unrounded. `log_pair` gives the logarithm of a double to about
2^-66, for pow, the gamma function and others.
"""

from __future__ import annotations

from . import dd
from .coefficients import fitted
from .dd import Pair
from .expr import BIAS, MANTISSA, X, copysign, estrin, fabs, fma, horner, sqrt, where
from .registry import define
from .scaling import exponent, lookup16, mantissa, wide_scale

_SQRT_HALF = {"float": 0x3F3504F3, "double": 0x3FE6A09E667F3BCD}
Pair2 = tuple[float, float]
_INF = float("inf")
_NAN = float("nan")

FLOAT_LOGARITHMS = {  # log_b e and log_b 2 in two parts each; log_b(1+f) = f log_b e + f^2 Q(f)
    "log": ((1.0, 0.0), (0.693145751953125, 1.42860682030941723212e-06)),
    "log2": ((1.4426950216293335, 1.925963033500149e-08), (1.0, 0.0)),
    "log10": ((0.4342944920063019, -1.0103050118726031e-08), (0.301025390625, 4.605038981195214e-06)),
}
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
LN2 = (0.6931471803691238, 1.9082149292705877e-10)
"""ln 2; the high part has 33 bits, so that times an exponent it is exact."""
LN2_PAIR = (0.6931471805599453, 2.3190468138462996e-17)
LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
LOG10_2 = (0.3010299956367817, 2.7199517610017277e-11)
"""log10 2; the high part has 34 bits."""


def split_exponent(x: X) -> tuple[X, X]:
    """(e as a float, m) with x = 2^e m, for positive finite x, denormals too."""
    mantissa = MANTISSA[x.elem]
    tiny = x < 2.0 ** (1 - BIAS[x.elem])
    bits = where(tiny, x * 2.0 ** (mantissa + 1), x).bits() - _SQRT_HALF[x.elem]
    m = ((bits & ((1 << mantissa) - 1)) + _SQRT_HALF[x.elem]).as_float()
    e = (bits >> mantissa).to_float(x.elem)
    return where(tiny, e - float(mantissa + 1), e), m


def log_domain(x: X, y: X) -> X:
    """y, or what a logarithm gives outside of the positive numbers."""
    y = where(x < _INF, y, x)
    return where(x > 0.0, y, where(x == 0.0, x.const(-_INF), x.const(_NAN)))


def _log_with_table(name: str, x: X) -> X:
    """x = 2^e m, m in [3/4, 3/2); with m's factor c from a register, log m = log(1/c) + log(1 + r), r = c m - 1."""
    (unit, unit_low), (two, two_low) = FLOAT_LOGARITHMS[name]
    m = mantissa(x)
    e = exponent(x) - exponent(m)
    index = m.bits().lshr(19)
    r = fma(m, lookup16(index, fitted(f"{name}.factors")), -1.0)
    tail = r * r * horner(r, fitted(f"{name}.table"))
    if unit_low:
        tail = fma(r, unit_low, tail)
    base = lookup16(index, fitted(f"{name}.logarithms"))
    if name == "log10":  # whose constant is unlucky as a float; ln 2 is a lucky one
        base, tail = fma(e, two, base), fma(e, two_low, tail)
    else:
        base = e + base if two == 1.0 else fma(e, two + two_low, base)
    return base + (r + tail if unit == 1.0 else fma(r, unit, tail))


def _log_float(name: str, x: X) -> X:
    if wide_scale(x) and x.type.lanes % 16 == 0:
        return _log_with_table(name, x)
    (unit, unit_low), (two, two_low) = FLOAT_LOGARITHMS[name]
    e, m = split_exponent(x)
    f = m - 1.0
    tail = f * f * horner(f, fitted(f"{name}.float"))
    if unit_low:
        tail = fma(f, unit_low, tail)
    if two_low:
        tail = fma(e, two_low, tail)
    if unit == 1.0:
        y = fma(e, two, f + tail)
    else:
        head, rest = dd.two_prod(f, unit)
        s, lost = dd.two_sum(e if two == 1.0 else e * two, head)
        y = s + (tail + (rest + lost))
    return log_domain(x, y)


define("log", "float")(lambda x: _log_float("log", x))
define("log2", "float")(lambda x: _log_float("log2", x))
define("log10", "float")(lambda x: _log_float("log10", x))


def _log_near_one(f: X, e: X, extra: X | None = None) -> X:
    """log(1 + f) + e ln 2 for f in [-0.3, 0.42], double; `extra` is added to what is small."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    series = z * estrin(z, fitted("log.double"))
    small = fma(e, LN2[1], s * (half_square + series))
    if extra is not None:
        small = small + extra
    return fma(e, LN2[0], f - (half_square - small))


@define("log", "double")
def log_double(x: X) -> X:
    e, m = split_exponent(x)
    return log_domain(x, _log_near_one(m - 1.0, e))


def log_pair(x: X) -> Pair:
    """The logarithm of a positive finite double as a pair."""
    e, m = split_exponent(x)
    return dd.add(dd.mul_const(e, LN2_PAIR), _log_mantissa_pair(m))


def _log_mantissa_pair(m: X) -> Pair:
    """log m as a pair, for m in [0.7, 1.42]."""
    top = (m - 1.0, m.const(0.0))
    s = dd.div(top, dd.add_single(top, 2.0))
    z = dd.mul(s, s)
    tail = estrin(z[0], fitted("log.dd"))
    series = dd.add_quick(dd.constant(m, _TWO_THIRDS), dd.two_prod(z[0], tail))
    cube = dd.mul(dd.mul(s, z), series)
    return dd.add_quick((s[0] + s[0], s[1] + s[1]), cube)


def _log_scaled(x: X, unit: Pair2, two: Pair2) -> X:
    """e log_b 2 + log(m) log_b e in double: log m as f - f^2/2 (a pair) and the small rest, each times log_b e."""
    e, m = split_exponent(x)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    square, square_low = dd.two_prod(f, f)
    half = square * 0.5
    high, low = dd.quick_two_sum(f, -half)
    low = low + (s * (half + z * estrin(z, fitted("log.double"))) - square_low * 0.5)
    head, rest = dd.two_prod(high, unit[0])
    rest = fma(high, unit[1], fma(low, unit[0], rest))
    total, lost = dd.two_sum(e if two[0] == 1.0 else e * two[0], head)
    rest = rest + lost
    return log_domain(x, total + (fma(e, two[1], rest) if two[1] else rest))


define("log2", "double")(lambda x: _log_scaled(x, LOG2_E, (1.0, 0.0)))
define("log10", "double")(lambda x: _log_scaled(x, LOG10_E, LOG10_2))


@define("log1p", "float double")
def log1p(x: X) -> X:
    """log of u = 1 + x, corrected by what rounding u lost, over u."""
    u = x + 1.0
    lost = x - (u - 1.0)
    lost = where(x > 1.0, 1.0 - (u - x), lost)
    e, m = split_exponent(u)
    correction = lost / u
    if x.elem == "double":
        y = _log_near_one(m - 1.0, e, correction)
    else:
        _, (two, two_low) = FLOAT_LOGARITHMS["log"]
        f = m - 1.0
        tail = fma(e, two_low, f * f * horner(f, fitted("log.float"))) + correction
        y = fma(e, two, f + tail)
    y = where(x < _INF, y, x)
    y = where(x > -1.0, y, where(x == -1.0, x.const(-_INF), x.const(_NAN)))
    return where(fabs(x) < 2.0 ** -(MANTISSA[x.elem] + 2), x, y)


@define("asinh", "double", long=True)
def asinh(x: X) -> X:
    """log(a + sqrt(a^2+1)), a = |x|: by log1p(a + a^2/(1 + sqrt(a^2+1))) below 2^28, above by log 2a."""
    a = fabs(x)
    huge = a > 2.0**28
    b = where(huge, 1.0, a)
    square = b * b
    y = log1p(b + square / (1.0 + sqrt(square + 1.0)))
    return copysign(where(huge, log_double(a) + LN2_PAIR[0], y), x)


@define("acosh", "double", long=True)
def acosh(x: X) -> X:
    """log1p(t + sqrt(2t + t^2)), t = x - 1; above 2^28 log 2x."""
    huge = x > 2.0**28
    t = where(huge, 1.0, x - 1.0)
    y = log1p(t + sqrt(fma(t, t, t + t)))
    return where(x >= 1.0, where(huge, log_double(x) + LN2_PAIR[0], y), float("nan"))


@define("atanh", "double", long=True)
def atanh(x: X) -> X:
    """log1p(2a/(1-a))/2, a = |x|."""
    a = fabs(x)
    return copysign(log1p((a + a) / (1.0 - a)) * 0.5, x)


def _through_double(name: str) -> None:
    body = {"asinh": asinh, "acosh": acosh, "atanh": atanh}[name]
    define(name, "float", long=True)(lambda x: body(x.widen()).narrow())


for _name in ("asinh", "acosh", "atanh"):
    _through_double(_name)
