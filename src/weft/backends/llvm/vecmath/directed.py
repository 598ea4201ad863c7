"""Arithmetic and conversions in the four rounding modes: rn (nearest even), rz (toward zero), rd (down), ru (up).

No mode of the processor is changed. An operation is done to nearest, the sign of what it lost is found without error
(two-sum for addition, fma for the rest; Handbook of Floating-Point Arithmetic, chapters 4 and 5), and the result is
moved to its neighbour when it lies on the wrong side. Where the error itself would underflow the operands are first
scaled by a power of two.

Conversions to integers saturate. NaN becomes 0 from float to 32 bits, else the integer with only its top bit set, as
PTX says.
"""

from __future__ import annotations

from collections.abc import Callable

from ..casts import to_integer
from .dd import two_prod, two_sum
from .expr import BIAS, MANTISSA, X, ceil, copysign, fabs, floor, fused as fma, rint, sqrt, trunc, where
from .registry import alias, define
from .simple import BOTH, exponent_and_mantissa, ldexp

_INF = float("inf")
_MODES = ("rz", "rd", "ru")


def _moved(x: X, up: bool) -> X:
    """The neighbour of x above or below it; for x other than 0."""
    bits = x.bits()
    outward, inward = bits + 1, bits - 1
    return (where(bits < 0, inward, outward) if up else where(bits < 0, outward, inward)).as_float()


def settle(mode: str, nearest: X, lost: X) -> X:
    """The exact value is nearest + lost, of which only the sign of `lost` matters: round it as `mode` says.

    An infinite `nearest` overflowed (callers keep exact infinities apart): rounded inward it is the largest number.
    """
    smallest = 2.0 ** (1 - BIAS[nearest.elem] - MANTISSA[nearest.elem])
    largest = (2.0 - 2.0 ** -MANTISSA[nearest.elem]) * 2.0 ** BIAS[nearest.elem]
    if mode == "ru":
        above = where(nearest == 0.0, smallest, _moved(nearest, up=True))
        return where(nearest == -_INF, -largest, where(lost > 0.0, above, nearest))
    if mode == "rd":
        below = where(nearest == 0.0, -smallest, _moved(nearest, up=False))
        return where(nearest == _INF, largest, where(lost < 0.0, below, nearest))
    inward = where(nearest.bits() < 0, lost > 0.0, lost < 0.0) & (nearest != 0.0)
    y = where(inward, (nearest.bits() - 1).as_float(), nearest)
    return where(fabs(nearest) == _INF, copysign(y.const(largest), nearest), y)


def _signed_zero(mode: str, y: X, vanishes: X, a: X, b: X) -> X:
    """The sum of a and b where it `vanishes` exactly: rounding down it is -0 unless both are +0."""
    if mode != "rd":
        return y
    return where(vanishes, where((a.bits() | b.bits()) == 0, y.const(0.0), y.const(-0.0)), y)


def _finite(*xs: X) -> X:
    cond = fabs(xs[0]) < _INF
    for x in xs[1:]:
        cond = cond & (fabs(x) < _INF)
    return cond


def _round_to_odd(s: X, lost: X) -> X:
    """A double next to s + lost whose last bit tells that something was lost, so that rounding it to float rounds the
    exact value.
    """
    bits = s.bits()
    inward = where(bits < 0, lost > 0.0, lost < 0.0)
    truncated = where(inward, bits - 1, bits)
    return where(lost == 0.0, bits, truncated | 1).as_float()


def narrow(mode: str, x: X) -> X:
    """A double to float."""
    y = x.narrow()
    if mode == "rn":
        return y
    back = y.widen()
    lost = where(x > back, 1.0, where(x < back, y.const(-1.0), y.const(0.0)))
    return where(_finite(x), settle(mode, y, lost), y)


def _add(mode: str, a: X, b: X) -> X:
    if mode == "rn":
        return a + b
    s, lost = two_sum(a, b)
    y = settle(mode, s, where(_finite(s), lost, 0.0))
    y = _signed_zero(mode, y, s == 0.0, a, b)
    return where(_finite(a, b), y, s)


def _sub(mode: str, a: X, b: X) -> X:
    return a - b if mode == "rn" else _add(mode, a, -b)


def _sign_of_product(p: X, a: X, b: X, lost: X) -> X:
    """`lost`, or where a product other than 0 became 0, a number of its sign."""
    return where((p == 0.0) & (a != 0.0) & (b != 0.0), copysign(p.const(1.0), p), lost)


def _mul(mode: str, a: X, b: X) -> X:
    if mode == "rn":
        return a * b
    if a.elem == "float":
        return narrow(mode, a.widen() * b.widen())
    p, lost = two_prod(a, b)
    # where p is so small that its error underflows, compare with the product of operands scaled up by 2^600
    first = fabs(a) < 1.0
    exact_high, exact_low = two_prod(where(first, a * 2.0**600, a), where(first, b, b * 2.0**600))
    lost = where(fabs(p) < 2.0**-900, (exact_high - p * 2.0**600) + exact_low, lost)
    lost = _sign_of_product(p, a, b, lost)
    return where(_finite(a, b), settle(mode, p, where(_finite(p), lost, 0.0)), p)


def _fma(mode: str, a: X, b: X, c: X) -> X:
    if mode == "rn":
        return fma(a, b, c)
    if a.elem == "float":
        p, c = a.widen() * b.widen(), c.widen()
        s, lost = two_sum(p, c)
        y = narrow(mode, where(_finite(s), _round_to_odd(s, lost), s))
        if mode == "rd":
            zero = where((p.bits() | c.bits()) == 0, y.const(0.0), y.const(-0.0))
            y = where((s == 0.0) & _finite(p, c), zero, y)
        return y
    r = fma(a, b, c)
    product = a * b
    # scaled so that neither the product's error underflows nor the product overflows where c cancels it
    small = (fabs(product) < 2.0**-900) & (fabs(c) < 2.0**-500)
    scale = where(small, a.const(2.0**400), where(fabs(product) > 2.0**1000, a.const(2.0**-100), a.const(1.0)))
    first = where(small, fabs(a) < fabs(b), fabs(a) > fabs(b))
    u, u_low = two_prod(where(first, a * scale, a), where(first, b, b * scale))
    # the error of an fma in three terms (Boldo & Muller 2011)
    alpha, z = two_sum(c * scale, u_low)
    beta, beta_low = two_sum(u, alpha)
    lost = ((beta - r * scale) + beta_low) + z
    lost = where((u == 0.0) & (r == c), _sign_of_product(product, a, b, lost), lost)
    y = settle(mode, r, where(_finite(r), lost, 0.0))
    return where(_finite(a, b, c), _signed_zero(mode, y, (r == 0.0) & (lost == 0.0), product, c), r)


def _div(mode: str, a: X, b: X) -> X:
    if mode == "rn":
        return a / b
    if a.elem == "float":
        wide_a, wide_b = a.widen(), b.widen()
        q = wide_a / wide_b
        lost = fma(-q, wide_b, wide_a)
        lost = where(b.bits() < 0, -lost, lost)
        plain = _finite(a, b) & (b != 0.0)
        return where(plain, narrow(mode, _round_to_odd(q, lost)), q.narrow())
    # the remainder of the significands, with the quotient scaled to fit
    q = a / b
    exponent_a, significand_a = exponent_and_mantissa(a)
    exponent_b, significand_b = exponent_and_mantissa(b)
    scaled = fabs(ldexp(q, (exponent_b - exponent_a).cast("trunc", "i32")))
    lost = fma(-scaled, significand_b, significand_a)
    lost = where(q.bits() < 0, -lost, lost)
    plain = _finite(a, b) & (b != 0.0) & (a != 0.0)
    return where(plain, settle(mode, q, where(_finite(q), lost, 0.0)), q)


def _rcp(mode: str, x: X) -> X:
    return _div(mode, x.const(1.0), x)


def _sqrt(mode: str, x: X) -> X:
    root = sqrt(x)
    if mode == "rn":
        return root
    if x.elem == "float":
        wide = root.widen()
        rest = fma(-wide, wide, x.widen())
        lost = where(rest > 0.0, 1.0, where(rest < 0.0, root.const(-1.0), root.const(0.0)))
    else:
        tiny = x < 2.0**-900
        scaled_root = where(tiny, root * 2.0**100, root)
        lost = fma(-scaled_root, scaled_root, where(tiny, x * 2.0**200, x))
    return where((x > 0.0) & (x < _INF), settle(mode, root, lost), root)


def _define_arithmetic() -> None:
    for name, args, operation in (
        ("add", "T T", _add),
        ("sub", "T T", _sub),
        ("mul", "T T", _mul),
        ("fma", "T T T", _fma),
        ("div", "T T", _div),
        ("rcp", "T", _rcp),
        ("sqrt", "T", _sqrt),
    ):
        for mode in ("rn", *_MODES):
            define(f"{name}_{mode}", BOTH, args)(_with_mode(operation, mode))


def _with_mode(operation: Callable[..., X], mode: str) -> Callable[..., X]:
    def body(*args: X) -> X:
        return operation(mode, *args)

    body.__doc__ = f"{operation.__name__.strip('_')} rounded {mode}"
    return body


_define_arithmetic()


# -- conversions ------------------------------------------------------------------------------------------------------


def saturating(x: X, to: str, unsigned: bool) -> X:
    """A float without fraction to an integer: what does not fit becomes the nearest that does."""
    y = X(x.f, to_integer(x.f, x.v, x.type.with_elem(to), signed=not unsigned))
    if x.elem == "float" and to == "i32":
        return y
    return where(x.isnan(), -(2 ** (31 if to == "i32" else 63)), y)


_ROUND: dict[str, Callable[[X], X]] = {"rn": rint, "rz": trunc, "rd": floor, "ru": ceil}


def _to_integer(mode: str, to: str, unsigned: bool) -> Callable[[X], X]:
    return lambda x: saturating(_ROUND[mode](x), to, unsigned)


def _from_integer(mode: str, to: str, unsigned: bool) -> Callable[[X], X]:
    """Exact where the integer fits in the significand; else the nearest, corrected by comparing it with the integer."""

    def convert(x: X) -> X:
        y = x.to_float_unsigned(to) if unsigned else x.to_float(to)
        if mode == "rn":
            return y
        if x.elem == "i32":
            wide = x.to_float_unsigned("double") if unsigned else x.to_float("double")
            return wide if to == "double" else narrow(mode, wide)
        # split: the upper part, whose low bits are zero, and the lower part are both exact as doubles
        low = x & 0xFFFFFFFF
        high = (x - low).to_float_unsigned("double") if unsigned else (x - low).to_float("double")
        s, lost = two_sum(high, low.to_float("double"))
        if to == "double":
            return settle(mode, s, lost)
        return narrow(mode, _round_to_odd(s, lost))

    return convert


def _define_conversions() -> None:
    for mode in ("rn", *_MODES):
        for source in ("float", "double"):
            for short, to, unsigned in (
                ("int", "i32", False),
                ("uint", "i32", True),
                ("ll", "i64", False),
                ("ull", "i64", True),
            ):
                define(f"{source}2{short}_{mode}", source, result=to)(_to_integer(mode, to, unsigned))
                define(f"{short}2{source}_{mode}", to, result=source)(_from_integer(mode, source, unsigned))
        define(f"double2float_{mode}", "double", result="float")(_narrowing(mode))
    for name in ("lrint", "llrint"):
        define(name, BOTH, result="i64")(_to_integer("rn", "i64", False))


def _narrowing(mode: str) -> Callable[[X], X]:
    return lambda x: narrow(mode, x)


_define_conversions()


@define("llround", BOTH, result="i64")
def llround(x: X) -> X:
    half = 0.49999997019767761 if x.elem == "float" else 0.49999999999999994
    return saturating(trunc(x + copysign(x.const(half), x)), "i64", False)


alias("lround", "llround")
