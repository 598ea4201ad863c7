"""exp, exp2, exp10, expm1, and the hyperbolic functions.

Method (Muller, Elementary Functions, chapters 3 and 11; Cody & Waite for the reduction): x = n log_b(2) + r, where
log_b(2) is split into a short high part, so that n times it is exact, and a low part; b^r is a minimax polynomial
(tools/vecmath_coefficients.py). With AVX-512 the float forms reduce to a sixteenth of that interval instead and read
2^(i/16) from a register: fewer operations on the multiplier, which is what bounds the speed.
"""

from __future__ import annotations

from dataclasses import dataclass

from .coefficients import fitted
from .expr import BIAS, MANTISSA, X, at_least, at_most, copysign, estrin, fabs, fma, horner, where
from .registry import define
from .scaling import lookup16, round_to_integer, scale, scalef, wide_scale


@dataclass(frozen=True)
class Base:
    """What b^x needs for one element type, beside the polynomials: b^r = 1 + r ln b + r^2 Q(r), or 1 + r T(r)."""

    factor: float
    """log2 b"""
    high: float
    low: float
    """log_b 2 in two parts; high has few bits"""
    lowest: float
    highest: float
    """below and above, the result is 0 and infinity"""
    linear: float
    linear_low: float
    """ln b in two parts"""


BASES = {
    ("exp", "float"): Base(1.4426950408889634, 0.693145751953125, 1.42860682030941723212e-06, -104.0, 89.0, 1.0, 0.0),
    ("exp2", "float"): Base(1.0, 1.0, 0.0, -151.0, 129.0, 0.6931471805599453, -1.904654299957768e-09),
    ("exp10", "float"): Base(
        3.321928094887362,
        0.301025390625,
        4.605038981195214e-06,
        -45.5,
        39.0,
        2.302585092994046,
        -3.197543673785701e-08,
    ),
    ("exp", "double"): Base(1.4426950408889634, 0.6931471803691238, 1.9082149292705877e-10, -746.0, 710.0, 1.0, 0.0),
    ("exp2", "double"): Base(1.0, 1.0, 0.0, -1076.0, 1025.0, 0.6931471805599453, 2.3190468138462996e-17),
    ("exp10", "double"): Base(
        3.321928094887362,
        0.3010299956367817,
        2.7199517610017277e-11,
        -324.0,
        309.0,
        2.302585092994046,
        -2.1707562233822494e-16,
    ),
}
"""High parts: ln 2 with 15 bits (float) and 33 bits (double), log10 2 with 12 and 34; each low part is the rest,
rounded.
"""

_SIXTEENTHS = [2.0 ** (i / 16) for i in range(16)]


def exponential(name: str, x: X, shift: int = 0, low: X | None = None, normal: bool = False) -> X:
    """b^x times 2^shift, which does not overflow before the product does.

    `low` is a small part of x (exp of doubles only); `normal` says that the result is known to be a normal number.
    Where the result is 0 nothing underflows: a product that does takes a processor a hundred times as long, and
    masked attention asks for the exponentials of half a matrix of -inf.
    """
    if normal:
        return _exponential(name, x, shift, low, normal=True)
    base = BASES[name, x.elem]
    vanishes = x < base.lowest - max(shift, 0)
    x = at_most(x, base.highest - min(shift, 0))
    return where(vanishes, 0.0, _exponential(name, where(vanishes, 0.0, x), shift, low, normal=False))


def _exponential(name: str, x: X, shift: int, low: X | None, *, normal: bool) -> X:
    base = BASES[name, x.elem]
    if x.elem == "float" and wide_scale(x) and x.type.lanes % 16 == 0:
        return _with_table(name, x, shift)
    n, bits = round_to_integer(x, base.factor, BIAS[x.elem])
    p = _reduced(name, x, n)
    if low is not None:
        p = fma(p, low, p)
    if shift:
        n, bits = n + float(shift), bits + shift
    if normal:
        return p * ((bits - BIAS[x.elem]) << MANTISSA[x.elem]).as_float()  # a product, so that NaN stays NaN
    return scale(p, n, bits)


def _reduced(name: str, x: X, n: X) -> X:
    """b^(x - n log_b 2)."""
    base, q = BASES[name, x.elem], fitted(f"{name}.{x.elem}")
    r = _remainder(x, n, base)
    if x.elem == "double":
        square = r * r
        tail = fma(square, estrin(r, q), r * base.linear_low if base.linear_low else 0.0)
        return fma(r, base.linear, tail) + 1.0
    return horner(r, (1.0, base.linear, *q))


def _remainder(x: X, n: X, base: Base) -> X:
    r = fma(n, -base.high, x)
    return fma(n, -base.low, r) if base.low else r


def _with_table(name: str, x: X, shift: int) -> X:
    """x = (n + i/16) log_b 2 + r: the sum that rounds has its last place at 1/16, its low bits are i."""
    base = BASES[name, x.elem]
    magic = 1.5 * 2.0**19
    shifted = fma(x, base.factor, magic)
    n = shifted - magic
    r = _remainder(x, n, base)
    root = lookup16(shifted.bits(), _SIXTEENTHS)
    return scalef(fma(root * r, horner(r, fitted(f"{name}.table")), root), n + float(shift) if shift else n)


define("exp", "float double")(lambda x: exponential("exp", x))
define("exp2", "float double")(lambda x: exponential("exp2", x))
define("exp10", "float double")(lambda x: exponential("exp10", x))


@define("expm1", "float double")
def expm1(x: X) -> X:
    """(e^r - 1) 2^n + (2^n - 1), with 2^(n-1) throughout and doubled at the end so that it does not overflow early."""
    base = BASES["exp", x.elem]
    bounded = at_least(at_most(x, base.highest), -25.0 if x.elem == "float" else -45.0)
    n, bits = round_to_integer(bounded, base.factor, BIAS[x.elem])
    r = _remainder(bounded, n, base)
    q = fitted(f"exp.{x.elem}")
    e = fma(r * r, horner(r, q) if x.elem == "float" else estrin(r, q), r)
    half = ((bits - (BIAS[x.elem] + 1)) << (23 if x.elem == "float" else 52)).as_float()
    y = fma(e, half, half - 0.5)
    return where(x == 0.0, x, y + y)


@define("sinh", "float double")
def sinh(x: X) -> X:
    """A polynomial below 1; above, from exp, halved before it can overflow."""
    size = fabs(x)
    square = at_most(x * x, 1.0)
    small = fma(x * square, horner(square, fitted(f"sinh.{x.elem}")), x)
    half = exponential("exp", size, -1)
    large = copysign(half - 0.25 / half, x)
    return where(size < 1.0, small, large)


@define("cosh", "float double")
def cosh(x: X) -> X:
    half = exponential("exp", fabs(x), -1)
    return half + 0.25 / half


@define("tanh", "float")
def tanh(x: X) -> X:
    """x + x^3 P(x^2) below 0.6; above, 1 - 2/(e^(2|x|) + 1), which is 1 from 9.02 on."""
    a = at_most(fabs(x), 10.0)
    large = 1.0 - 2.0 / (exponential("exp", a + a, normal=True) + 1.0)
    z = a * a
    small = fma(a * z, horner(z, fitted("tanh.float")), a)
    return copysign(where(a < 0.6, small, large), x)


@define("tanh", "double")
def tanh_double(x: X) -> X:
    """E/(E+2), E = e^(2|x|) - 1."""
    a = at_most(fabs(x), 20.0)
    e = expm1(a + a)
    return copysign(e / (e + 2.0), x)
