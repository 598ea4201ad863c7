"""Element-wise operations on arrays, as docs/semantics.md has them: integers wrap, floats round once, all corners
defined.

f16, bf16 and fp8 are computed in f32 (or in f64 where f32 would round a second time) and rounded to their type.
Transcendental functions of f32 are computed in f64: they are nearer to the true value than a GPU's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from weft.ops.rounding import round_to, toward_zero

from . import libdevice
from .values import DTYPES, Array, unsigned

__all__ = ["elementwise", "fma", "is_elementwise"]

INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip
COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _bits(x: Array) -> int:
    return 1 if x.dtype == np.bool_ else 8 * x.dtype.itemsize


def _wide(x: Array) -> Array:
    """f16, bf16, fp8 as f32; others as they are."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)


# -- integers ---------------------------------------------------------------------------------------------------------


def _divide(a: Array, b: Array) -> Array:
    """Towards zero; x / 0 is 0, the smallest value by -1 is itself."""
    if a.dtype.kind == "b":
        return a & b
    safe = np.where(b == 0, 1, b).astype(b.dtype)
    if a.dtype.kind == "u":
        return np.where(b == 0, 0, a // safe).astype(a.dtype)
    minus = safe == -1
    quotient = a // np.where(minus, 1, safe)
    remainder = a - quotient * np.where(minus, 1, safe)
    quotient = quotient + ((remainder != 0) & ((a < 0) != (safe < 0)))
    return np.where(b == 0, 0, np.where(minus, -a, quotient)).astype(a.dtype)


def _remainder(a: Array, b: Array) -> Array:
    """The sign of the dividend; x % 0 is x."""
    if a.dtype.kind == "b":
        return a & ~b
    return np.where(b == 0, a, a - _divide(a, b) * b).astype(a.dtype)


def _shift(kind: str, a: Array, b: Array) -> Array:
    """Amounts count as unsigned; those of the width and more shift everything out."""
    bits = _bits(a)
    amount = unsigned(b)
    over = amount >= bits
    by = np.where(over, 0, amount)
    if kind == "arith.shrsi":
        by = np.where(over, bits - 1, amount).astype(a.dtype)
        return a >> by
    u = unsigned(a)
    moved = u << by.astype(u.dtype) if kind == "arith.shli" else u >> by.astype(u.dtype)
    return np.where(over, 0, moved).astype(u.dtype).view(a.dtype)


def _high(a: Array, b: Array, signed: bool) -> Array:
    """The upper half of the product."""
    bits = _bits(a)
    x, y = (v if signed else unsigned(v) for v in (a, b))
    if bits <= 32:
        wide = np.int64 if signed else np.uint64
        return (x.astype(wide) * y.astype(wide) >> wide(bits)).astype(x.dtype).view(a.dtype)
    product = x.astype(object) * y.astype(object)
    high = np.frompyfunc(lambda v: (int(v) >> bits) & ((1 << bits) - 1), 1, 1)(product)
    return np.asarray(high.astype(np.uint64)).view(a.dtype)


def _count_zeros(x: Array, leading: bool) -> Array:
    bits = _bits(x)
    left = unsigned(x)
    found = np.zeros(x.shape, np.int64)
    going = np.ones(x.shape, np.bool_)
    for i in range(bits):
        at = bits - 1 - i if leading else i
        going &= (left >> left.dtype.type(at) & left.dtype.type(1)) == 0
        found += going
    return found.astype(x.dtype)


def _popcount(x: Array) -> Array:
    return np.bitwise_count(unsigned(x)).astype(x.dtype)


def _integer_math(fn: Callable[[Array, Array], Array], wrap_bool: Callable[[Array, Array], Array]) -> Any:
    def run(a: Array, b: Array) -> Array:
        return wrap_bool(a, b) if a.dtype == np.bool_ else fn(a, b)

    return run


def _unsigned_op(fn: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: fn(unsigned(a), unsigned(b)).view(a.dtype)


INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addi": _integer_math(np.add, np.logical_xor),
    "arith.subi": _integer_math(np.subtract, np.logical_xor),
    "arith.muli": _integer_math(np.multiply, np.logical_and),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.divsi": _divide,
    "arith.remsi": _remainder,
    "arith.divui": _unsigned_op(_divide),
    "arith.remui": _unsigned_op(_remainder),
    "arith.shli": lambda a, b: _shift("arith.shli", a, b),
    "arith.shrsi": lambda a, b: _shift("arith.shrsi", a, b),
    "arith.shrui": lambda a, b: _shift("arith.shrui", a, b),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned_op(np.maximum),
    "arith.minui": _unsigned_op(np.minimum),
    "arith.mulhui": lambda a, b: _high(a, b, False),
    "arith.mulhsi": lambda a, b: _high(a, b, True),
}


# -- floats -----------------------------------------------------------------------------------------------------------


def fma(a: Array, b: Array, c: Array, elem: str) -> Array:
    """a * b + c, rounded once."""
    if elem == "f64":
        return _fma64(a, b, c)
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product  # Knuth's two-sum: total + error is exact
    error = (product - (total - back)) + (addend - back)
    even = (np.ascontiguousarray(total).view(np.int64) & 1) == 0
    inexact = (error != 0) & even & np.isfinite(total)
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return round_to(np.where(inexact, odd, total), elem)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    def one(x: float, y: float, z: float) -> float:
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            return x * y + z
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact == 0:
            return x * y + z
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf

    return np.asarray(np.frompyfunc(one, 3, 1)(a, b, c), np.float64)


FLOAT: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "math.copysign": np.copysign,
    "math.powf": np.power,
    "math.atan2": np.arctan2,
}


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


def _round_away(x: Array) -> Array:
    """To the nearest whole number, of two the one further from zero."""
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole), x)


EXACT: dict[str, Callable[[Array], Array]] = {
    "math.absf": np.abs,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": _round_away,
    "math.sqrt": np.sqrt,
}
TRANSCENDENTAL: dict[str, Callable[[Array], Array]] = {
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": np.expm1,
    "math.log": np.log,
    "math.log2": np.log2,
    "math.log10": np.log10,
    "math.log1p": np.log1p,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.sin": np.sin,
    "math.cos": np.cos,
    "math.tan": np.tan,
    "math.asin": np.arcsin,
    "math.acos": np.arccos,
    "math.atan": np.arctan,
    "math.sinh": np.sinh,
    "math.cosh": np.cosh,
    "math.tanh": np.tanh,
    "math.asinh": np.arcsinh,
    "math.acosh": np.arccosh,
    "math.atanh": np.arctanh,
    "math.cbrt": np.cbrt,
    "math.erf": _erf,
}
INTEGER_UNARY: dict[str, Callable[[Array], Array]] = {
    "math.absi": np.abs,
    "math.ctpop": _popcount,
    "math.ctlz": lambda x: _count_zeros(x, True),
    "math.cttz": lambda x: _count_zeros(x, False),
}


def _compare_floats(a: Array, b: Array, predicate: str) -> Array:
    if predicate in ("false", "true"):
        return np.full(np.broadcast_shapes(a.shape, b.shape), predicate == "true")
    x, y = _wide(a), _wide(b)
    unordered = np.isnan(x) | np.isnan(y)
    if predicate in ("ord", "uno"):
        return unordered if predicate == "uno" else ~unordered
    found = COMPARE[predicate[1:]](x, y)
    return found | unordered if predicate[0] == "u" else found & ~unordered


def _compare_integers(a: Array, b: Array, predicate: str) -> Array:
    if predicate in ("eq", "ne"):
        return COMPARE[predicate](a, b)
    x, y = (unsigned(a), unsigned(b)) if predicate[0] == "u" or a.dtype == np.bool_ else (a, b)
    if a.dtype == np.bool_ and predicate[0] == "s":
        x, y = -a.astype(np.int8), -b.astype(np.int8)  # a signed i1 is 0 or -1
    return COMPARE[predicate[1:]](x, y)


def _predicate(value: Any, names: tuple[str, ...]) -> str:
    return value if isinstance(value, str) else names[int(value)]


# -- casts ------------------------------------------------------------------------------------------------------------


def _to_integer(x: Array, elem: str, signed: bool) -> Array:
    """Towards zero; out of range saturates, NaN is 0."""
    dtype = DTYPES[elem]
    if elem == "i1":
        return np.asarray(_wide(x) != 0)
    kind = dtype if signed else np.dtype(f"u{dtype.itemsize}")
    info = np.iinfo(kind)
    wide = np.trunc(_wide(x).astype(np.float64))
    inside = (wide > float(info.min) - 1) & (wide < float(info.max) + 1) & ~np.isnan(wide)
    if info.bits == 64:  # float(max) is max + 1
        inside = (wide >= float(info.min)) & (wide < 2.0 ** (63 if signed else 64))
    found = np.where(inside, wide, 0).astype(kind)
    least, most = kind.type(info.min), kind.type(info.max)
    clipped = np.where(np.isnan(wide), kind.type(0), np.where(wide < 0, least, most))
    return np.where(inside, found, clipped).astype(kind).view(dtype)


def _cast(name: str, x: Array, elem: str, attrs: dict[str, Any]) -> Array:
    dtype = DTYPES[elem]
    match name:
        case "arith.extf":
            return x.astype(np.float32).astype(dtype) if _bits(x) < 32 else x.astype(dtype)
        case "arith.truncf":
            if attrs.get("roundingmode") in ("toward_zero", "rtz"):
                return toward_zero(x, elem)
            return round_to(x, elem)
        case "arith.sitofp" | "arith.uitofp":
            source = unsigned(x) if name == "arith.uitofp" or x.dtype == np.bool_ else x
            if elem in ("f32", "f64"):
                return source.astype(dtype)
            return round_to(_odd_from_integer(source), elem)
        case "arith.fptosi" | "arith.fptoui":
            return _to_integer(x, elem, name == "arith.fptosi")
        case "arith.extsi":
            return (-x.astype(np.int8)).astype(dtype) if x.dtype == np.bool_ else x.astype(dtype)
        case "arith.extui":
            return unsigned(x).astype(f"u{dtype.itemsize}").view(dtype)
        case "arith.trunci":
            return np.asarray((x & 1) != 0) if elem == "i1" else x.astype(dtype)
        case "arith.index_cast":
            return x.astype(dtype)
    return np.ascontiguousarray(x).view(dtype)  # arith.bitcast


def _odd_from_integer(x: Array) -> Array:
    """An integer as f64; one with too many bits to the neighbour with an odd last bit."""
    near = x.astype(np.float64)
    if x.dtype.itemsize < 8:
        return near
    high, low = (x >> 11) << 11, x & 0x7FF  # 53 bits are exact; what is cut off stays visible in one bit
    large = np.abs(near) >= 2.0**52
    return np.where(large, high.astype(np.float64) + np.where(low != 0, 1024.0, 0.0), near)


CASTS = (
    "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.extsi",
    "arith.extui", "arith.trunci", "arith.index_cast", "arith.bitcast",
)  # fmt: skip
OTHERS = ("arith.cmpi", "arith.cmpf", "arith.negf", "math.fma", "select")
LIBDEVICE = {
    f"libdevice.{name}": f"math.{name}"
    for name in (
        "exp",
        "exp2",
        "log",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "tanh",
        "sqrt",
        "rsqrt",
        "erf",
        "fma",
        "cbrt",
    )
} | {"libdevice.__nv_fmaf": "math.fma", "libdevice.__nv_fma": "math.fma"}


def is_elementwise(name: str) -> bool:
    """Whether `elementwise` knows an operation."""
    name = LIBDEVICE.get(name, name)
    if name.startswith("libdevice."):
        return libdevice.known(name.removeprefix("libdevice."))
    tables = (INTEGER, FLOAT, EXACT, TRANSCENDENTAL, INTEGER_UNARY)
    return name in CASTS or name in OTHERS or any(name in t for t in tables)


def elementwise(name: str, operands: list[Array], elem: str, attrs: dict[str, Any]) -> Array:
    """The result of an element-wise operation, of element type `elem`.

    >>> elementwise("arith.divsi", [np.array([-7, 5]), np.array([2, 0])], "i64", {})
    array([-3,  0])
    """
    name = LIBDEVICE.get(name, name)
    a = operands[0]
    if name.startswith("libdevice."):
        return libdevice.run(name.removeprefix("libdevice."), operands, DTYPES[elem])
    if name in INTEGER:
        return np.asarray(INTEGER[name](a, operands[1]))
    if name in FLOAT:
        x, y = _wide(a), _wide(operands[1])
        return round_to(FLOAT[name](x, y), elem)
    if name in EXACT:
        return round_to(EXACT[name](_wide(a)), elem)
    if name in TRANSCENDENTAL:
        return round_to(TRANSCENDENTAL[name](a.astype(np.float64)), elem)
    if name in INTEGER_UNARY:
        return INTEGER_UNARY[name](a)
    if name in CASTS:
        return _cast(name, a, elem, attrs)
    match name:
        case "arith.cmpi":
            return _compare_integers(a, operands[1], _predicate(attrs["predicate"], INTEGER_PREDICATES))
        case "arith.cmpf":
            return _compare_floats(a, operands[1], _predicate(attrs["predicate"], FLOAT_PREDICATES))
        case "arith.negf":
            sign = unsigned(a)
            flipped: Array = (sign ^ sign.dtype.type(1 << _bits(a) - 1)).view(a.dtype)
            return flipped
        case "math.fma":
            return fma(a, operands[1], operands[2], elem)
        case "select":
            return np.where(a, operands[1], operands[2]).astype(operands[1].dtype)
    raise KeyError(name)
