"""Functions of f32 by the approximate instructions of the GPU, where those of the library take twice as many.

What `ex2.approx`, `rcp.approx` and `lg2.approx` give is off by up to 2^-22 of the result; each function is arranged so
that this enters where it weighs little, and near zeros there are polynomials. Errors in units in the last place, with
instructions as bad as they may be: tests/backends/nvidia/test_approximations.py.

    exp, exp10    2^n 2^r, n an integer and r what is left: ex2 of a small argument
    tanh          1 - 2/(e^(2|x|) + 1), a polynomial near 0
    erf           1 - 2^-(a Q(a)), a polynomial below 1
    log ...       x = 2^e m with m in [sqrt(1/2), sqrt(2)), a polynomial in m - 1
    rsqrt         the instruction alone
    pow           powers.py
    sin, atan ... angles.py
"""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.llvm.vecmath.coefficients import fitted
from weft.backends.llvm.vecmath.expr import X, copysign, fabs, fma, horner, intrinsic, where
from weft.backends.llvm.vecmath.logarithm import FLOAT_LOGARITHMS
from weft.backends.llvm.vecmath.registry import define

from .angles import ANGLES
from .approximate_instructions import approximate, ex2, lg2, rcp, rsqrt
from .powers import binary_exponent, power

LOG2_E = (1.4426950216293335, 1.925963033500149e-08)
LOG2_10 = (3.321928024291992, 7.0595775e-08)
LN_2, LOG10_2 = 0.6931471805599453, 0.3010299956639812
_INF = float("inf")


def _scaled_power(x: X, unit: tuple[float, float]) -> X:
    """2^(x unit), rounded once where it is denormal: 2^n, n from -126 to 127, times 2^r, which may overflow."""
    magic = 1.5 * 2.0**23 + 127
    shifted = fma(x, unit[0], magic)
    shifted = intrinsic("minnum", intrinsic("maxnum", shifted, magic - 126), magic + 127)
    n = shifted - magic
    r = fma(x, unit[1], fma(x, unit[0], -n))
    return ex2(r) * (shifted.bits() << 23).as_float()


def exp(x: X) -> X:
    """e^x."""
    return _scaled_power(x, LOG2_E)


def exp10(x: X) -> X:
    """10^x."""
    return _scaled_power(x, LOG2_10)


def tanh(x: X) -> X:
    """x + x^3 P(x^2) below 0.6; above, 1 - 2/(e^(2|x|) + 1)."""
    a = fabs(x)
    large = fma(rcp(ex2(a * (2 * LOG2_E[0])) + 1.0), -2.0, 1.0)
    z = a * a
    small = fma(a * z, horner(z, fitted("tanh.float")), a)
    return copysign(where(a < 0.6, small, large), x)


def erf(x: X) -> X:
    """a P(a^2) below 1, a = |x|; above, 1 - 2^-(a Q(a))."""
    a = fabs(x)
    bounded = intrinsic("minnum", a, 3.93)
    large = 1.0 - ex2(-(bounded * horner(bounded, fitted("erf.float.large"))))
    small = a * horner(a * a, fitted("erf.float.small"))
    return copysign(where(a >= 1.0, large, small), x)


def _domain(x: X, y: X) -> X:
    """y, or what a logarithm gives for what is not positive and finite."""
    outside = ~x.bits().ult(0x7F800000)  # infinity, NaN, and whatever has a sign
    return where(x == 0.0, x.const(-_INF), where(outside, fma(x, _INF, _INF), y))


def _of_mantissa(name: str, f: X) -> X:
    """The logarithm of 1 + f, f in [sqrt(1/2) - 1, sqrt(2) - 1), without a sum of its own for the polynomial."""
    (unit, unit_low), _ = FLOAT_LOGARITHMS[name]
    polynomial = horner(f, fitted(f"{name}.float"))
    if unit == 1.0:
        return fma(f * f, polynomial, f)
    return fma(f, unit, f * fma(f, polynomial, unit_low))


def _logarithm(name: str) -> Callable[[X], X]:
    _, (two, two_low) = FLOAT_LOGARITHMS[name]

    def logarithm(x: X) -> X:
        tiny = x < 2.0**-126
        bits = where(tiny, x * 2.0**23, x).bits()
        field = binary_exponent(bits)
        e = fma(field.to_float("float"), 2.0**-23, where(tiny, x.const(-23.0), x.const(0.0)))
        rest = _of_mantissa(name, (bits - field).as_float() - 1.0)
        if name == "log":  # rounding log 2 to one float costs 0.05 ulp, log10 2 more
            return _domain(x, fma(e, LN_2, rest))
        return _domain(x, e + rest if two == 1.0 else fma(e, two, fma(e, two_low, rest)))

    return logarithm


def log1p(x: X) -> X:
    """e log 2 + log(1 + f): e is the exponent of 1 + x as rounded, and f = x 2^-e + (2^-e - 1) is rounded once."""
    u = x + 1.0
    field = binary_exponent(u.bits())
    scale = (0x40800000 - field).as_float()  # 2^(2 - e), because 2^-e may be denormal
    f = (x.bits() - field).as_float() + fma(scale, 0.25, -1.0)
    y = fma(field.to_float("float"), LN_2 * 2.0**-23, _of_mantissa("log", f))
    return where(x == 0.0, x, _domain(u, y))


_FASTEST: dict[str, Callable[..., X]] = {
    "fast_expf": lambda x: ex2(x * LOG2_E[0]),
    "fast_exp10f": lambda x: ex2(x * LOG2_10[0]),
    "fast_log2f": lg2,
    "fast_logf": lambda x: lg2(x) * LN_2,
    "fast_log10f": lambda x: lg2(x) * LOG10_2,
    "fast_sinf": lambda x: approximate("sin", x),
    "fast_cosf": lambda x: approximate("cos", x),
    "fast_tanhf": tanh,
    "fast_powf": lambda x, y: ex2(y * lg2(x)),
    "fast_dividef": lambda x, y: approximate("quotient", x, y),
}
"""What asks for speed before all."""
_USUAL: dict[str, Callable[..., X]] = {
    "exp": exp,
    "exp10": exp10,
    "tanh": tanh,
    "erf": erf,
    **{name: _logarithm(name) for name in FLOAT_LOGARITHMS},
    "log1p": log1p,
    "pow": power,
    "rsqrt": rsqrt,
    **ANGLES,
}

_OF_TWO = ("pow", "atan2", "fast_powf", "fast_dividef")

APPROXIMATIONS = {name: f"gpu.{name}" for name in (*_USUAL, *_FASTEST)}
"""By what name a function of f32 is found that is made of instructions of the GPU."""

for _name, _body in {**_USUAL, **_FASTEST}.items():
    define(APPROXIMATIONS[_name], "float", "T T" if _name in _OF_TWO else "T")(_body)
