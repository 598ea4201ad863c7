"""Bessel functions of integer order: j0 j1 jn, y0 y1 yn, and the modified i0 i1. Doubles; floats are done as doubles.

Up to 26: polynomials on intervals of a half, relative to their zeros. Beyond: modulus and phase, J + iY = M e^(i
theta) (Abramowitz & Stegun 9.2.17), with the phase added to the reduced argument, so that large arguments cost no
accuracy; there the error is relative to the modulus, not to a value near a zero. Y near 0: its logarithm apart
(9.1.13). jn: upward recurrence where n < x, else Miller's downward one (9.12); yn upward.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import dd
from .exponential import exponential
from .expr import X, fabs, flip_sign, sqrt, where, while_any
from .logarithm import log1p, log_double
from .piecewise import piecewise
from .reduction import reduce_double
from .registry import define, invoke
from .trig import sin_cos_kernels

_INF = float("inf")
_NAN = float("nan")
_LIMIT = 26.0
_TWO_OVER_PI = 0.6366197723675814
_QUARTER_PI = (0.7853981633974483, 3.061616997868383e-17)


def _far(order: int, x: X, second_kind: bool) -> X:
    """J or Y of order 0 or 1 for x >= 26: M cos or M sin of x - (2 order + 1) pi/4 + rest/x."""
    inverse = 1.0 / x
    square = inverse * inverse
    n, high, low = reduce_double(x)
    # a turn by -pi/4, or by pi/4 and back by pi/2, whichever leaves it near 0; order 1 turns by another -pi/2
    below = high < 0.0
    turned, lost = dd.two_sum(high, where(below, high.const(_QUARTER_PI[0]), high.const(-_QUARTER_PI[0])))
    quarter_low = where(below, high.const(_QUARTER_PI[1]), high.const(-_QUARTER_PI[1]))
    n = where(below, n - 1, n)
    rest = piecewise(f"phase{order}", square) * inverse
    total, more = dd.two_sum(turned, rest)
    sine, cosine = sin_cos_kernels(*dd.quick_two_sum(total, more + (lost + (low + quarter_low))))
    n = n - order
    if not second_kind:
        n = n + 1
    y = flip_sign(where((n & 1) != 0, cosine, sine), n << 62)
    return where(x == _INF, 0.0, y * (piecewise(f"modulus{order}", square) / sqrt(x)))


def _first_kind(order: int, x: X) -> X:
    a = fabs(x)
    near = a < _LIMIT
    y = where(near, piecewise(f"j{order}", a), _far(order, where(near, 100.0, a), False))
    y = where(x.isnan(), x, y)
    return flip_sign(y, x) if order else y


define("j0", "double", long=True)(lambda x: _first_kind(0, x))
define("j1", "double", long=True)(lambda x: where(fabs(x) < 1e-8, x * 0.5, _first_kind(1, x)))


_Y0_ZERO = (0.8935769662791675, 2.6596231539720385e-17)
_LOG_Y0_ZERO = -0.11252280788079412


def _second_kind_domain(x: X, y: X) -> X:
    y = where(x > 0.0, y, where(x == 0.0, x.const(-_INF), x.const(_NAN)))
    return where(x.isnan(), x, y)


@define("y0", "double", long=True)
def y0(x: X) -> X:
    near, small = x < _LIMIT, x < 2.0
    s = where(small & (x > 0.0), x, 1.0)
    distance = (s - _Y0_ZERO[0]) - _Y0_ZERO[1]
    logarithm = where(fabs(distance) < 0.25, log1p(distance / _Y0_ZERO[0]), log_double(s) - _LOG_Y0_ZERO)
    below = piecewise("y0_small", s * s) * (distance * (s + _Y0_ZERO[0])) + _TWO_OVER_PI * logarithm * piecewise(
        "j0", s
    )
    y = where(small, below, where(near, piecewise("y0", x), _far(0, where(near, 100.0, x), True)))
    return _second_kind_domain(x, y)


@define("y1", "double", long=True)
def y1(x: X) -> X:
    near, small = x < _LIMIT, x < 1.5
    s = where(small & (x > 0.0), x, 1.0)
    first = where(s < 1e-8, s * 0.5, piecewise("j1", s))
    below = piecewise("y1_small", s * s) * s + _TWO_OVER_PI * (log_double(s) * first - 1.0 / s)
    y = where(small, below, where(near, piecewise("y1", x), _far(1, where(near, 100.0, x), True)))
    return _second_kind_domain(x, y)


@define("yn", "double", "i32 T", long=True)
def yn(n: X, x: X) -> X:
    """Y(k+1) = 2k/x Y(k) - Y(k-1), which is stable upward."""
    start, following = invoke("y0", x), invoke("y1", x)
    steps = where(n > 1, n, 1).to_float("double")
    inverse = 2.0 / x

    def step(state: Sequence[X]) -> Sequence[X]:
        k, a, b = state
        return [k + 1.0, b, where(b == -_INF, b, k * inverse * b - a)]

    _, _, result = while_any([x.const(1.0), start, following], lambda s: s[0] < steps, step)
    y = where(n == 0, start, result)
    return where(n < 0, _NAN, where(x == _INF, 0.0, y))


@define("jn", "double", "i32 T", long=True)
def jn(n: X, x: X) -> X:
    a = fabs(x)
    order = where(n > 0, n, 0).to_float("double")
    usable = (a > 0.0) & (a < _INF)
    size = where(usable, a, 1.0)
    first, second = invoke("j0", size), invoke("j1", size)
    inverse = 2.0 / size
    upward = order <= size

    def up(state: Sequence[X]) -> Sequence[X]:
        k, p, q = state
        return [k + 1.0, q, k * inverse * q - p]

    _, _, above = while_any([x.const(1.0), first, second], lambda s: (s[0] < order) & upward, up)
    # Miller: from far above n down to 0 with an arbitrary start, kept small, then scaled by the larger of J0 and J1
    top = order + 20.0 + sqrt(order * 60.0)
    top = where(upward, 0.0, top.to_int("i64").to_float("double"))

    def down(state: Sequence[X]) -> Sequence[X]:
        k, p, q, wanted = state  # q is J(k), p is J(k+1), up to a factor
        wanted = where(k == order, q, wanted)
        r = k * inverse * q - p
        shrink = where(fabs(r) > 1e100, x.const(1e-100), x.const(1.0))
        return [k - 1.0, q * shrink, r * shrink, wanted * shrink]

    zero = x.const(0.0)
    _, one, nought, wanted = while_any([top, zero, x.const(1e-30), zero], lambda s: s[0] > 0.0, down)
    by_zero = fabs(first) > fabs(second)
    below = wanted / where(by_zero, nought, one) * where(by_zero, first, second)
    y = where(upward, where(n == 0, first, above), where(n == 0, first, where(n == 1, second, below)))
    y = where(usable, y, where(a == 0.0, where(n == 0, x.const(1.0), zero), zero))
    y = where(((n & 1) != 0) & (x < 0.0), -y, y)
    return where(x.isnan(), x, where(n < 0, _NAN, y))


define("cyl_bessel_i0", "double", long=True)(lambda x: _modified(0, x))


@define("cyl_bessel_i1", "double", long=True)
def i1(x: X) -> X:
    return where(fabs(x) < 1e-8, x * 0.5, flip_sign(_modified(1, x), x))


def _modified(order: int, x: X) -> X:
    """e^x times a slowly varying function; the exponential scaled down until the end, where it would overflow early."""
    a = fabs(x)
    near = a < 16.0
    small = piecewise(f"i{order}", a)
    if order:
        small = small * a
    far = where(near, 100.0, where(a < 1e4, a, 1e4))
    large = piecewise(f"i{order}_large", 1.0 / far) / sqrt(far)
    y = exponential("exp", a, -20) * where(near, small, large) * 2.0**20
    return where(a == _INF, _INF, y)


def _through_double(name: str, args: str) -> None:
    def one(x: X) -> X:
        return invoke(name, x.widen()).narrow()

    def two(n: X, x: X) -> X:
        return invoke(name, n, x.widen()).narrow()

    define(name, "float", args, long=True)(two if " " in args else one)


for _name in ("j0", "j1", "y0", "y1", "cyl_bessel_i0", "cyl_bessel_i1"):
    _through_double(_name, "T")
for _name in ("jn", "yn"):
    _through_double(_name, "i32 T")
