"""sin, cos, tan and their forms for multiples of pi.

After the reduction to |r| <= pi/4 (reduction.py) the quadrant says which of the two kernels, sin r or cos r, is the
result and with which sign (Muller, Elementary Functions, chapter 11; kernels are minimax polynomials in r^2). The
float kernels are one polynomial whose coefficients are chosen lane by lane, which halves the multiplications.
"""

from __future__ import annotations

from .coefficients import fitted
from .expr import X, copysign, flip_sign, fma, horner, rint, where
from .reduction import reduce_double, reduce_float
from .registry import define


def _kernels_float(r: X) -> tuple[X, X]:
    """sin r, cos r for float."""
    z = r * r
    return fma(r * z, horner(z, fitted("sin.float")), r), fma(z, horner(z, (-0.5, *fitted("cos.float"))), 1.0)


def _pick(odd: X, r: X) -> X:
    """sin r, or where `odd` cos r (float): u + u z (c0 + z c1 + ...), u = r or 1."""
    z = r * r
    u = where(odd, 1.0, r)
    cosine, sine = (-0.5, *fitted("cos.float")), (*fitted("sin.float"), 0.0)
    c = [where(odd, r.const(a), r.const(b)) for a, b in zip(cosine, sine)]
    return fma(u * z, horner(z, c), u)


def by_quadrant(n: X, r: X, shift: int) -> X:
    """sin(r + (n + shift) pi/2) for float."""
    if shift:
        n = n + shift
    y = _pick((n & 1) != 0, r)
    return flip_sign(y, n << (n.type.bits - 2))


def sin_cos_kernels(r: X, low: X) -> tuple[X, X]:
    """sin(r + low), cos(r + low) for double."""
    z = r * r
    half = z * 0.5
    sine = r + fma(r * z, horner(z, fitted("sin.double")), low * (1.0 - half))
    base = 1.0 - half
    cosine = base + (((1.0 - base) - half) + fma(z * z, horner(z, fitted("cos.double")), -(r * low)))
    return sine, cosine


def _double_by_quadrant(x: X, shift: int) -> X:
    n, r, low = reduce_double(x)
    sine, cosine = sin_cos_kernels(r, low)
    n = n + shift if shift else n
    return flip_sign(where((n & 1) != 0, cosine, sine), n << 62)


@define("sin", "float")
def sin_float(x: X) -> X:
    n, r = reduce_float(x)
    return where(x == 0.0, x, by_quadrant(n, r, 0))


@define("cos", "float")
def cos_float(x: X) -> X:
    n, r = reduce_float(x)
    return by_quadrant(n, r, 1)


@define("tan", "float")
def tan_float(x: X) -> X:
    n, r = reduce_float(x)
    odd = (n & 1) != 0
    sine, cosine = _kernels_float(r)
    y = where(odd, cosine, sine) / where(odd, -sine, cosine)
    return where(x == 0.0, x, y)


define("sin", "double")(lambda x: where(x == 0.0, x, _double_by_quadrant(x, 0)))
define("cos", "double")(lambda x: _double_by_quadrant(x, 1))


@define("tan", "double")
def tan_double(x: X) -> X:
    n, r, low = reduce_double(x)
    sine, cosine = sin_cos_kernels(r, low)
    odd = (n & 1) != 0
    y = where(odd, cosine, sine) / where(odd, -sine, cosine)
    return where(x == 0.0, x, y)


# -- multiples of pi --------------------------------------------------------------------------------------------------

_PI = {"float": (3.1415927410125732, -8.742277657347586e-08), "double": (3.141592653589793, 1.2246467991473532e-16)}


def sin_cos_pi(x: X) -> tuple[X, X, X]:
    """(n, sin(pi r), cos(pi r)) with x = n/2 + r, |r| <= 1/4, n an integer below 4 in size."""
    turn = x - 2.0 * rint(x * 0.5)
    n = rint(turn + turn)
    r = turn - n * 0.5
    z = r * r
    pi, pi_low = _PI[x.elem]
    sine = fma(r, pi, r * fma(z, horner(z, fitted(f"sinpi.{x.elem}")), pi_low))
    cosine = fma(z, horner(z, fitted(f"cospi.{x.elem}")), 1.0)
    return n.to_int("i32" if x.elem == "float" else "i64"), sine, cosine


@define("sinpi", "float double")
def sinpi(x: X) -> X:
    n, sine, cosine = sin_cos_pi(x)
    y = flip_sign(where((n & 1) != 0, cosine, sine), n << (n.type.bits - 2))
    return where(y == 0.0, copysign(y, x), y)


@define("cospi", "float double")
def cospi(x: X) -> X:
    n, sine, cosine = sin_cos_pi(x)
    n = n + 1
    y = flip_sign(where((n & 1) != 0, cosine, sine), n << (n.type.bits - 2))
    return where(y == 0.0, 0.0, y)
