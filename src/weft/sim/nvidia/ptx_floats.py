"""What PTX's instructions on floats compute, on arrays of bits ("Floating Point Instructions").

Everything is rounded once: fma is summed without error first, and what rounds in a direction is compared with the exact
value. Approximations (`ex2.approx`, `tanh.approx`, ...) are the function itself in f64, rounded: a GPU is a unit or two
off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from .ptx_text import PTXError
from .ptx_values import BITS, FLOATS, PAIRS, Array, as_bits, halves, joined, viewed

DIRECTIONS = {"rz": 0.0, "rm": -np.inf, "rp": np.inf}
"""Roundings other than to nearest, and where they go to."""
_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
"""The least normal number."""


def _extremum(nan_wins: Callable[..., Array], number_wins: Callable[..., Array], sign: float) -> Callable[..., Array]:
    """min and max: of a number and NaN the number, unless `.NaN`; -0.0 is less than 0.0; NaN has no sign."""

    def run(name: tuple[str, ...], a: Array, b: Array) -> Array:
        chosen = (nan_wins if "NaN" in name else number_wins)(a, b)
        zero = np.where(np.signbit(a * sign) | np.signbit(b * sign), -sign, sign) * chosen.dtype.type(0)
        chosen = np.where((a == 0) & (b == 0), zero, chosen).astype(chosen.dtype)
        return np.where(np.isnan(chosen), np.abs(chosen), chosen)

    return run


_TWO: dict[str, Callable[[tuple[str, ...], Array, Array], Array]] = {
    "add": lambda _, a, b: a + b, "sub": lambda _, a, b: a - b,
    "mul": lambda _, a, b: a * b, "div": lambda _, a, b: a / b,
    "min": _extremum(np.minimum, np.fmin, 1.0), "max": _extremum(np.maximum, np.fmax, -1.0),
    "copysign": lambda _, a, b: np.copysign(b, a),
}  # fmt: skip
_SIGNS: dict[str, Callable[[Array], Array]] = {"neg": np.negative, "abs": np.abs}
_ONE: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "rcp": lambda a: 1 / a,
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip
FLOAT_WORDS = {
    **dict.fromkeys(("add", "sub", "mul", "fma", "mad"), "rn rz rm rp ftz sat relu"),
    **dict.fromkeys(("min", "max"), "ftz NaN"), **dict.fromkeys(("neg", "abs"), "ftz"), "copysign": "",
    **dict.fromkeys(("div", "rcp", "sqrt"), "rn rz rm rp ftz approx full"),
    **dict.fromkeys(("rsqrt", "ex2", "lg2", "sin", "cos", "tanh"), "ftz approx"),
}  # fmt: skip
"""By the first word of the name: which words may stand between it and the type."""


def flushed(x: Array, type: str) -> Array:
    """`.ftz`: what is smaller than a normal number is zero of its sign."""
    return np.where(np.abs(x) < _NORMAL[type], np.copysign(x.dtype.type(0), x), x).astype(x.dtype)


def _odd(x: Array, error: Array) -> Array:
    """f64 of which `error` was cut off, as the neighbour with an odd last bit: later roundings take it for no tie."""
    bits = x.view(np.int64)
    more = (error > 0) == (x > 0)
    step = np.where(more, 1, -1) * ((error > 0) | (error < 0))
    return np.asarray((bits + step * (~bits & 1)).view(np.float64))


def rounded(x: Array, type: str) -> Array:
    """f32 or f64 to a type, once and to nearest even."""
    if type == "bf16" and x.dtype == np.float64:  # by way of f32, to odd
        near = x.astype(np.float32)
        toward_zero = near.view(np.int32) - (np.abs(near.astype(np.float64)) > np.abs(x))
        inexact = (near != x) & ~np.isnan(x)
        x = np.where(inexact, toward_zero.astype(np.int32) | 1, near.view(np.int32)).astype(np.int32).view(np.float32)
    return x.astype(FLOATS[type])


def finished(name: tuple[str, ...], x: Array, type: str) -> Array:
    """.sat, .relu and .ftz of a result, as bits."""
    if "sat" in name:
        x = np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(x.dtype)
    if "relu" in name:
        x = np.where(x < 0, 0, x).astype(x.dtype)
    return as_bits(flushed(x, type) if "ftz" in name else x)


def _fma(type: str, a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once: of types up to f32 the product is exact in f64, and Knuth's sum tells its error."""
    if type == "f64":
        return np.asarray(np.frompyfunc(_fma64, 3, 1)(a, b, c), np.float64)
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product
    return rounded(_odd(total, (product - (total - back)) + (addend - back)), type)


def _fma64(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact) if exact else a * b + c  # zero has a sign
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c, "mad": lambda a, b, c: a * b + c, "rcp": lambda a: 1 / a,
}  # fmt: skip


def _beyond(name: str) -> Callable[..., int]:
    """A function of a result and the operands: 1 where the result is more than the exact value, -1 where less, or 0."""

    def compare(near: float, *others: float) -> int:
        try:
            operands = [Fraction(x) for x in others]
            exact = operands[0] if name == "sqrt" else _EXACT[name](*operands)
        except (OverflowError, ValueError, ZeroDivisionError):  # of infinity and NaN there is no exact value
            return 0
        if math.isinf(near):
            return 1 if near > 0 else -1
        difference = Fraction(near) ** (2 if name == "sqrt" else 1) - exact
        return (difference > 0) - (difference < 0)

    return compare


def _directed(name: tuple[str, ...], near: Array, operands: list[Array]) -> Array:
    """The result to nearest moved by one, if that is the direction that the name says."""
    direction = next((part for part in name if part in DIRECTIONS), None)
    if direction is None:
        return near
    if near.dtype not in (np.float32, np.float64):
        raise PTXError(f"`{'.'.join(name)}`")
    beyond = np.asarray(np.frompyfunc(_beyond(name[0]), 1 + len(operands), 1)(near, *operands), np.int8)
    moved = {"rz": np.sign(near) * beyond > 0, "rm": beyond > 0, "rp": beyond < 0}[direction]
    directed = np.where(moved, np.nextafter(near, near.dtype.type(DIRECTIONS[direction])), near)
    if direction == "rm" and name[0] in ("add", "sub", "fma", "mad"):  # zero out of different signs is negative
        *first, last = operands
        negative = np.signbit(first[0] * first[-1] if len(first) > 1 else first[0])
        negative |= np.signbit(-last if name[0] == "sub" else last)
        directed = np.where((near == 0) & (beyond == 0) & negative, -np.abs(near), directed)
    return np.asarray(directed)


def float_operation(name: tuple[str, ...], x: list[Array]) -> Array:
    """An arithmetic instruction whose type is a float, or a pair of them."""
    base, type = name[0], name[-1]
    if type in PAIRS:
        single = (*name[:-1], PAIRS[type])
        split = [halves(v, BITS[type]) for v in x]
        return joined(*(float_operation(single, [v[k] for v in split]) for k in (0, 1)))
    operands = [viewed(v, type) for v in x]
    if "ftz" in name:
        operands = [flushed(v, type) for v in operands]
    if base in _SIGNS:
        return as_bits(_SIGNS[base](operands[0]))
    if base in ("fma", "mad"):
        near = _fma(type, *operands)
    elif base in _ONE:
        near = rounded(_ONE[base](operands[0].astype(np.float64)), type)
    else:
        near = rounded(_TWO[base](name, *(v if type == "f64" else v.astype(np.float32) for v in operands)), type)
    return finished(name, _directed(name, near, operands), type)


_ORDERED: dict[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def compare_floats(name: tuple[str, ...], type: str, a: Array, b: Array) -> Array:
    """setp of floats: `lt` is false and `ltu` is true where either is NaN."""
    relation = name[1]
    x, y = (viewed(v, type) for v in (a, b))
    x, y = (flushed(v, type) if "ftz" in name else v.astype(np.float64) for v in (x, y))
    nan = np.isnan(x) | np.isnan(y)
    if relation in ("num", "nan"):
        return nan if relation == "nan" else ~nan
    plain = relation if relation in _ORDERED else relation.removesuffix("u")
    if plain not in _ORDERED:
        raise PTXError(f"the comparison .{relation} of floats")
    holds = np.asarray(_ORDERED[plain](x, y))
    return holds | nan if plain != relation else holds & ~nan


def is_kind(kind: str, x: Array, type: str) -> Array:
    """testp: what kind of number it is."""
    a = np.abs(viewed(x, type).astype(np.float64))
    by_kind = {
        "finite": np.isfinite(a), "infinite": np.isinf(a), "number": ~np.isnan(a), "notanumber": np.isnan(a),
        "normal": np.isfinite(a) & (a >= _NORMAL[type]), "subnormal": (a > 0) & (a < _NORMAL[type]),
    }  # fmt: skip
    if kind not in by_kind:
        raise PTXError(f"the test .{kind}")
    return np.asarray(by_kind[kind])
