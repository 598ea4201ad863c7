"""exp, exp2, exp10, expm1, and the hyperbolic functions.

Method (Muller, Elementary Functions, chapters 3 and 11; Cody & Waite for the reduction): x = n log_b(2) + r, where
log_b(2) is split into a short high part, so that n times it is exact, and a low part; b^r is a minimax polynomial
(tools/vecmath_coefficients.py). With AVX-512 the float forms reduce to a sixteenth of that interval instead and read
2^(i/16) from a register: fewer operations on the multiplier, which is what bounds the speed.
"""

from __future__ import annotations

from dataclasses import dataclass

from .expr import BIAS, MANTISSA, X, at_least, at_most, copysign, estrin, fabs, fma, horner, where
from .registry import define
from .scaling import lookup16, round_to_integer, scale, scalef, wide_scale


@dataclass(frozen=True)
class Base:
    """What b^x needs for one element type."""

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
    q: tuple[float, ...]
    """b^r = 1 + r ln b + r^2 Q(r)"""
    table: tuple[float, ...] = ()
    """b^r = 1 + r T(r) on the sixteenth (float)"""


BASES = {
    ("exp", "float"): Base(
        1.4426950408889634,
        0.693145751953125,
        1.42860682030941723212e-06,
        -104.0,
        89.0,
        1.0,
        0.0,
        (0.4999999403953552, 0.1666652113199234, 0.04166827350854874, 0.008368683978915215, 0.0013820120366290212),
        (1.0, 0.5000165104866028, 0.16666853427886963),
    ),
    ("exp2", "float"): Base(
        1.0,
        1.0,
        0.0,
        -151.0,
        129.0,
        0.6931471805599453,
        -1.904654299957768e-09,
        (0.24022647738456726, 0.05550362169742584, 0.009618505835533142, 0.0013390223030000925, 0.00015326573338825256),
        (0.6931471824645996, 0.24023443460464478, 0.05550236254930496),
    ),
    ("exp10", "float"): Base(
        3.321928094887362,
        0.301025390625,
        4.605038981195214e-06,
        -45.5,
        39.0,
        2.302585092994046,
        -3.197543673785701e-08,
        (2.6509487628936768, 2.034661054611206, 1.1712987422943115, 0.5416598916053772, 0.20599080622196198),
        (2.3025851249694824, 2.651036024093628, 2.034320116043091),
    ),
    ("exp", "double"): Base(
        1.4426950408889634,
        0.6931471803691238,
        1.9082149292705877e-10,
        -746.0,
        710.0,
        1.0,
        0.0,
        (
            0.5000000000000011,
            0.16666666666666446,
            0.04166666666652751,
            0.008333333333477282,
            0.0013888888944180884,
            0.00019841269537968352,
            2.4801492597854954e-05,
            2.7557561622098007e-06,
            2.763041530011249e-07,
            2.5007207912190788e-08,
        ),
    ),
    ("exp2", "double"): Base(
        1.0,
        1.0,
        0.0,
        -1076.0,
        1025.0,
        0.6931471805599453,
        2.3190468138462996e-17,
        (
            0.24022650695910122,
            0.05550410866482072,
            0.009618129107596945,
            0.0013333558146689352,
            0.00015403530454188583,
            1.5252733543895894e-05,
            1.3215436520115465e-06,
            1.017818574067821e-07,
            7.073598547333906e-09,
            4.436169200441328e-10,
        ),
    ),
    ("exp10", "double"): Base(
        3.321928094887362,
        0.3010299956367817,
        2.7199517610017277e-11,
        -324.0,
        309.0,
        2.302585092994046,
        -2.1707562233822494e-16,
        (
            2.6509490552392045,
            2.034678592293445,
            1.171255148908455,
            0.5393829292060978,
            0.2069958495107262,
            0.06808936391589904,
            0.019597620236640724,
            0.005013977879906406,
            0.0011575551375316454,
            0.00024115816817475719,
        ),
    ),
}
"""High parts: ln 2 with 15 bits (float) and 33 bits (double), log10 2 with 12 and 34; each low part is the rest,
rounded.
"""

_SIXTEENTHS = [2.0 ** (i / 16) for i in range(16)]


def exponential(name: str, x: X, shift: int = 0, low: X | None = None, normal: bool = False) -> X:
    """b^x times 2^shift, which does not overflow before the product does.

    `low` is a small part of x (exp of doubles only); `normal` says that the result is known to be a normal number.
    """
    base = BASES[name, x.elem]
    if not normal:
        x = at_least(at_most(x, base.highest - min(shift, 0)), base.lowest - max(shift, 0))
    if x.elem == "float" and wide_scale(x) and x.type.lanes % 16 == 0:
        return _with_table(x, base, shift)
    n, bits = round_to_integer(x, base.factor, BIAS[x.elem])
    p = _reduced(x, n, base)
    if low is not None:
        p = fma(p, low, p)
    if shift:
        n, bits = n + float(shift), bits + shift
    if normal:
        return p * ((bits - BIAS[x.elem]) << MANTISSA[x.elem]).as_float()  # a product, so that NaN stays NaN
    return scale(p, n, bits)


def _reduced(x: X, n: X, base: Base) -> X:
    """b^(x - n log_b 2)."""
    r = _remainder(x, n, base)
    if x.elem == "double":
        square = r * r
        tail = fma(square, estrin(r, base.q), r * base.linear_low if base.linear_low else 0.0)
        return fma(r, base.linear, tail) + 1.0
    return horner(r, (1.0, base.linear, *base.q))


def _remainder(x: X, n: X, base: Base) -> X:
    r = fma(n, -base.high, x)
    return fma(n, -base.low, r) if base.low else r


def _with_table(x: X, base: Base, shift: int) -> X:
    """x = (n + i/16) log_b 2 + r: the sum that rounds has its last place at 1/16, its low bits are i."""
    magic = 1.5 * 2.0**19
    shifted = fma(x, base.factor, magic)
    n = shifted - magic
    r = _remainder(x, n, base)
    root = lookup16(shifted.bits(), _SIXTEENTHS)
    return scalef(fma(root * r, horner(r, base.table), root), n + float(shift) if shift else n)


@define("exp", "float double")
def exp(x: X) -> X:
    return exponential("exp", x)


@define("exp2", "float double")
def exp2(x: X) -> X:
    return exponential("exp2", x)


@define("exp10", "float double")
def exp10(x: X) -> X:
    return exponential("exp10", x)


@define("expm1", "float double")
def expm1(x: X) -> X:
    """(e^r - 1) 2^n + (2^n - 1), with 2^(n-1) throughout and doubled at the end so that it does not overflow early."""
    base = BASES["exp", x.elem]
    bounded = at_least(at_most(x, base.highest), -25.0 if x.elem == "float" else -45.0)
    n, bits = round_to_integer(bounded, base.factor, BIAS[x.elem])
    r = _remainder(bounded, n, base)
    e = fma(r * r, horner(r, base.q) if x.elem == "float" else estrin(r, base.q), r)
    half = ((bits - (BIAS[x.elem] + 1)) << (23 if x.elem == "float" else 52)).as_float()
    y = fma(e, half, half - 0.5)
    return where(x == 0.0, x, y + y)


_SINH = {
    "float": (0.1666666716337204, 0.008333312347531319, 0.00019842349865939468, 2.7859568945132196e-06),
    "double": (
        0.16666666666666666,
        0.008333333333333567,
        0.00019841269841069622,
        2.755731930517547e-06,
        2.5052090776708934e-08,
        1.606114331309442e-10,
        7.517311184112346e-13,
        6.077350336514187e-15,
    ),
}


@define("sinh", "float double")
def sinh(x: X) -> X:
    """A polynomial below 1; above, from exp, halved before it can overflow."""
    size = fabs(x)
    square = at_most(x * x, 1.0)
    small = fma(x * square, horner(square, _SINH[x.elem]), x)
    half = exponential("exp", size, -1)
    large = copysign(half - 0.25 / half, x)
    return where(size < 1.0, small, large)


@define("cosh", "float double")
def cosh(x: X) -> X:
    half = exponential("exp", fabs(x), -1)
    return half + 0.25 / half


TANH_SMALL = (
    -0.33333295583724976,
    0.13331833481788635,
    -0.05377436801791191,
    0.020759016275405884,
    -0.005846931599080563,
)


@define("tanh", "float")
def tanh(x: X) -> X:
    """x + x^3 P(x^2) below 0.6; above, 1 - 2/(e^(2|x|) + 1), which is 1 from 9.02 on."""
    a = at_most(fabs(x), 10.0)
    large = 1.0 - 2.0 / (exponential("exp", a + a, normal=True) + 1.0)
    z = a * a
    small = fma(a * z, horner(z, TANH_SMALL), a)
    return copysign(where(a < 0.6, small, large), x)


@define("tanh", "double")
def tanh_double(x: X) -> X:
    """E/(E+2), E = e^(2|x|) - 1."""
    a = at_most(fabs(x), 20.0)
    e = expm1(a + a)
    return copysign(e / (e + 2.0), x)
