"""Operations on floats, as docs/reference/semantics.md has them: rounded once, all corners defined.

f16, bf16 and fp8 are computed in f32 (or in f64 where f32 would round a second time) and rounded to their type.
Transcendental functions of f32 are computed in f64: they are nearer to the true value than a GPU's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import DTYPES
from .elements import ELEMENTS
from .integers import unsigned
from .rounding import Array, round_to
from .row import FLOATS, FUNCTION, QUOTIENT, Meaning, Row

_FNUZ = tuple(DTYPES[e.name] for e in ELEMENTS.values() if e.specials == "fnuz")


def wide(x: Array) -> Array:
    """f16, bf16, fp8 as f32; others as they are. A type's only NaN has no sign."""
    if x.dtype in (np.float32, np.float64):
        return x
    widened = x.astype(np.float32)
    return np.where(np.isnan(widened), np.float32(np.nan), widened) if x.dtype in _FNUZ else widened


def fma(a: Array, b: Array, c: Array, elem: str) -> Array:
    """a * b + c, rounded once."""
    if elem == "f64":
        return _fma64(a, b, c)
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product  # Knuth's two-sum: total + error is exact
    error = (product - (total - back)) + (addend - back)
    even = (np.asarray(total, order="C").view(np.int64) & 1) == 0
    inexact = (error != 0) & even & np.isfinite(total)
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return round_to(np.where(inexact, odd, total), elem)


def _fused(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
    a, b, c = operands
    return fma(a, b, c, elem)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    def one(x: float, y: float, z: float) -> float:
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            return x * y + z
        (n, d), (m, e), (k, f) = (v.as_integer_ratio() for v in (x, y, z))
        exact = n * m * f + k * d * e
        if exact == 0:
            return x * y + z
        try:
            return exact / (d * e * f)  # of integers rounded once
        except OverflowError:
            return math.inf if exact > 0 else -math.inf

    return np.asarray(np.frompyfunc(one, 3, 1)(a, b, c), np.float64)


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _round_away(x: Array) -> Array:
    """To the nearest whole number, of two the one further from zero."""
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole), x)


def _negated(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
    if operands[0].dtype.itemsize == 1:  # some have no negative zero, and saturate
        return round_to(-wide(operands[0]), elem)
    bits = unsigned(operands[0])
    flipped: Array = (bits ^ bits.dtype.type(1 << 8 * bits.dtype.itemsize - 1)).view(operands[0].dtype)
    return flipped


def _clamped(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
    x, low, high = map(wide, operands)
    clamped = np.fmin(np.fmax(x, low), high)
    return round_to(np.where(np.isnan(x), x, clamped) if attrs.get("propagateNan") else clamped, elem)


def _exact(name: str, arity: int, function: Callable[..., Any], **facts: Any) -> Row:
    """An operation whose result in f32 or f64 is rounded once."""

    def meaning(operands: Sequence[Array], elem: str, attrs: Mapping[str, Any]) -> Array:
        return round_to(function(*map(wide, operands)), elem)

    return Row(name, FLOATS, arity, meaning, **facts)


def _in_f64(function: Callable[..., Any]) -> Meaning:
    return lambda operands, elem, attrs: round_to(function(*(x.astype(np.float64) for x in operands)), elem)


def _functions(keeps_zero: bool, **functions: Callable[[Array], Any]) -> list[Row]:
    return [
        Row(f"math.{name}", FLOATS, 1, _in_f64(function), FUNCTION, keeps_zero=keeps_zero)
        for name, function in functions.items()
    ]


def _number(value: float) -> Callable[[Any], float]:
    return lambda e: value


FLOAT_ROWS = (
    _exact("arith.addf", 2, np.add, commutes=True, neutral=_number(-0.0)),
    _exact("arith.subf", 2, np.subtract),
    _exact("arith.mulf", 2, np.multiply, commutes=True, neutral=_number(1.0)),
    _exact("arith.divf", 2, np.divide, cost=QUOTIENT),
    _exact("arith.remf", 2, np.fmod, cost=FUNCTION),
    _exact("arith.maximumf", 2, np.maximum, neutral=_number(-math.inf)),
    _exact("arith.minimumf", 2, np.minimum, neutral=_number(math.inf)),
    _exact("arith.maxnumf", 2, np.fmax, neutral=_number(math.nan)),
    _exact("arith.minnumf", 2, np.fmin, neutral=_number(math.nan)),
    Row("arith.negf", FLOATS, 1, _negated, keeps_zero=True),
    Row("math.fma", FLOATS, 3, _fused),
    _exact("math.copysign", 2, np.copysign),
    _exact("math.absf", 1, np.abs, keeps_zero=True),
    _exact("math.floor", 1, np.floor, keeps_zero=True),
    _exact("math.ceil", 1, np.ceil, keeps_zero=True),
    _exact("math.trunc", 1, np.trunc, keeps_zero=True),
    _exact("math.round", 1, _round_away, keeps_zero=True),
    _exact("math.roundeven", 1, np.rint, keeps_zero=True),
    _exact("math.sqrt", 1, np.sqrt, cost=QUOTIENT, keeps_zero=True),
    _exact("tt.precise_sqrt", 1, np.sqrt, cost=QUOTIENT, keeps_zero=True, lane="math.sqrt precise"),
    _exact("tt.precise_divf", 2, np.divide, cost=QUOTIENT, lane="arith.divf precise"),
    Row("tt.clampf", FLOATS, 3, _clamped, lane="arith.minnumf"),
    *_functions(
        True, expm1=np.expm1, log1p=np.log1p, sin=np.sin, tan=np.tan, asin=np.arcsin, atan=np.arctan, sinh=np.sinh,
        tanh=np.tanh, asinh=np.arcsinh, atanh=np.arctanh, cbrt=np.cbrt, erf=_erf,
    ),
    *_functions(
        False, exp=np.exp, exp2=np.exp2, log=np.log, log2=np.log2, log10=np.log10, rsqrt=lambda x: 1 / np.sqrt(x),
        cos=np.cos, acos=np.arccos, cosh=np.cosh, acosh=np.arccosh,
    ),
    _exact("math.powf", 2, np.power, cost=FUNCTION),
    _exact("math.atan2", 2, np.arctan2, cost=FUNCTION),
)  # fmt: skip
