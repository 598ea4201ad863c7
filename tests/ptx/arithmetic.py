"""Numbers: sums, products, quotients, comparisons, functions.

fma rounds once: it is computed in the host's longest float, and, for bf16, rounded to odd on the way. Approximations
(`.approx`, `.full`) are the function itself, rounded: a GPU is a unit or two off.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .parsing import Instruction
from .state import BF16, TYPES, Array, Fault, State, Unknown, bits_of, means

FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "rcp": lambda a: 1 / a,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
DIRECTED = {"rz", "rm", "rp"}
WIDER = {"s16": "s32", "u16": "u32", "s32": "s64", "u32": "u64"}
SMALLEST = 2.0**-126
"""The least normal float32."""

__all__ = ["applied", "flushed", "is_float", "to_bf16"]


def is_float(type: str) -> bool:
    return "f" in type


def flushed(a: Array) -> Array:
    """`.ftz`: what is smaller than a normal float32 is zero of its sign."""
    return np.where(np.abs(a) < SMALLEST, np.copysign(np.float32(0), a), a).astype(a.dtype)


def to_bf16(wide: Array) -> Array:
    """A long float rounded once to bf16: first to odd in float32, which the last rounding cannot take for a tie."""
    near = wide.astype(np.float32)
    bits = near.view(np.uint32)
    inexact = (near.astype(np.longdouble) != wide) & np.isfinite(near)
    above = np.abs(near.astype(np.longdouble)) > np.abs(wide)
    odd = np.where(inexact, np.where(above, bits - np.uint32(1), bits) | np.uint32(1), bits)
    return odd.astype(np.uint32).view(np.float32).astype(BF16)


def applied(s: State, i: Instruction, function: Callable[..., Array], count: int) -> None:
    """The function of the first `count` operands in the instruction's type; of both halves where there are two."""
    elem = i.type.removesuffix("x2") if i.type in ("f16x2", "bf16x2") else i.type
    if elem != i.type:
        whole = [s.word(operand) for operand in i.operands[1 : 1 + count]]
        result = s.every(0)
        for shift in (np.uint64(0), np.uint64(16)):
            halves = [(word >> shift).astype(np.uint16).view(TYPES[elem]) for word in whole]
            result |= bits_of(function(*halves).astype(TYPES[elem])) << shift
        s.write(i.operands[0], result)
        return
    given = [s.read(operand, elem) for operand in i.operands[1 : 1 + count]]
    if "ftz" in i.parts:
        given = [flushed(a) for a in given]
    value = function(*given).astype(TYPES[elem])
    if "ftz" in i.parts:
        value = flushed(value)
    if "sat" in i.parts:
        if not is_float(elem):
            raise Unknown(i.text)
        value = np.where(np.isnan(value), 0, np.clip(value, 0, 1)).astype(value.dtype)
    s.write(i.operands[0], value)


def _nearest(i: Instruction) -> None:
    if DIRECTED & set(i.parts) or "relu" in i.parts or "cc" in i.parts:
        raise Unknown(i.text)


@means("add")
def _add(s: State, i: Instruction) -> None:
    _nearest(i)
    applied(s, i, lambda a, b: a + b, 2)


@means("sub")
def _sub(s: State, i: Instruction) -> None:
    _nearest(i)
    applied(s, i, lambda a, b: a - b, 2)


def _high(a: Array, b: Array) -> Array:
    """The upper half of the product."""
    bits = 8 * a.dtype.itemsize
    upper = [(int(x) * int(y) >> bits) % (1 << bits) for x, y in zip(a, b, strict=True)]
    return np.array(upper, f"u{bits // 8}").view(a.dtype)


def _product(s: State, i: Instruction) -> tuple[Array, str]:
    """The product of the first two operands, and its type."""
    a, b = (s.read(operand, i.type) for operand in i.operands[1:3])
    if "wide" in i.parts:
        wide = WIDER[i.type]
        return a.astype(TYPES[wide]) * b.astype(TYPES[wide]), wide
    return (_high(a, b) if "hi" in i.parts else a * b), i.type


@means("mul")
def _mul(s: State, i: Instruction) -> None:
    _nearest(i)
    if is_float(i.type):
        applied(s, i, lambda a, b: a * b, 2)
    else:
        s.write(i.operands[0], _product(s, i)[0])


@means("mad")
def _mad(s: State, i: Instruction) -> None:
    _nearest(i)
    if is_float(i.type):
        _fma(s, i)
        return
    product, type = _product(s, i)
    s.write(i.operands[0], product + s.read(i.operands[3], type))


@means("fma")
def _fma(s: State, i: Instruction) -> None:
    """Floating Point Instructions, fma: rounded once, after the sum."""
    _nearest(i)

    def once(a: Array, b: Array, c: Array) -> Array:
        x, y, z = (v.astype(np.float32 if v.dtype == BF16 else v.dtype).astype(np.longdouble) for v in (a, b, c))
        exact = x * y + z
        return to_bf16(exact) if a.dtype == BF16 else exact

    applied(s, i, once, 3)


def _checked(s: State, a: Array, b: Array) -> Array:
    """The divisor, 1 for threads that do not take part. Fault where one is zero: the result is open."""
    if (b[s.active] == 0).any():
        raise Fault("a division of integers by zero")
    return np.where(b == 0, 1, b).astype(b.dtype)


def _integers(a: Array, values: list[int]) -> Array:
    bits = 8 * a.dtype.itemsize
    return np.array([v % (1 << bits) for v in values], f"u{bits // 8}").view(a.dtype)


@means("div")
def _div(s: State, i: Instruction) -> None:
    """Integers are cut towards zero."""
    _nearest(i)

    def whole(a: Array, b: Array) -> Array:
        pairs = [(int(x), int(y)) for x, y in zip(a, _checked(s, a, b), strict=True)]
        return _integers(a, [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs])

    applied(s, i, (lambda a, b: a / b) if is_float(i.type) else whole, 2)


@means("rem")
def _rem(s: State, i: Instruction) -> None:
    """Of the sign of the dividend, as it is on GPUs; the manual leaves it open for negative numbers."""

    def rest(a: Array, b: Array) -> Array:
        pairs = [(int(x), int(y)) for x, y in zip(a, _checked(s, a, b), strict=True)]
        return _integers(a, [abs(x) % abs(y) * (1 if x >= 0 else -1) for x, y in pairs])

    applied(s, i, rest, 2)


@means("min", "max")
def _extremum(s: State, i: Instruction) -> None:
    """Floating Point Instructions, min: of a number and NaN the number, unless `.NaN`; -0.0 is less than 0.0."""
    if {"relu", "xorsign"} & set(i.parts) or len(i.operands) != 3:
        raise Unknown(i.text)
    largest = i.name == "max"

    def whole(a: Array, b: Array) -> Array:
        return np.maximum(a, b) if largest else np.minimum(a, b)

    def floats(a: Array, b: Array) -> Array:
        x, y = (v.astype(np.float32) if v.dtype == BF16 else v for v in (a, b))
        if "NaN" in i.parts:
            r = np.maximum(x, y) if largest else np.minimum(x, y)
        else:
            r = np.fmax(x, y) if largest else np.fmin(x, y)
        negative = np.signbit(x) & np.signbit(y) if largest else np.signbit(x) | np.signbit(y)
        zero = np.where(negative, -0.0, 0.0).astype(r.dtype)
        r = np.where((x == 0) & (y == 0), zero, r)
        return np.where(np.isnan(r), np.abs(np.full_like(r, np.nan)), r)

    applied(s, i, floats if is_float(i.type) else whole, 2)


@means("neg")
def _neg(s: State, i: Instruction) -> None:
    applied(s, i, lambda a: -a, 1)


@means("abs")
def _abs(s: State, i: Instruction) -> None:
    applied(s, i, np.abs, 1)


@means("copysign")
def _copysign(s: State, i: Instruction) -> None:
    """The sign of the first operand, the magnitude of the second."""
    applied(s, i, lambda a, b: np.copysign(b, a), 2)


@means(*FUNCTIONS)
def _function(s: State, i: Instruction) -> None:
    """In float64, rounded to the type."""
    _nearest(i)
    function = FUNCTIONS[i.name]
    applied(s, i, lambda a: function(a.astype(np.float64)), 1)


@means("setp")
def _setp(s: State, i: Instruction) -> None:
    """Comparison and Selection Instructions, setp: `ltu` and its like are true where an operand is NaN, `lt` is not."""
    kind, type = i.parts[0], i.type
    a, b = (s.read(operand, type) for operand in i.operands[1:3])
    if "ftz" in i.parts:
        a, b = flushed(a), flushed(b)
    if a.dtype == BF16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    floats = is_float(type)
    nan = np.isnan(a) | np.isnan(b) if floats else np.zeros(s.threads, bool)
    unordered = floats and len(kind) == 3 and kind.endswith("u")
    kind = kind[:2] if unordered else {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(kind, kind)
    known = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "num": ~nan, "nan": nan}
    if kind not in known:
        raise Unknown(i.text)
    result = known[kind] | nan if unordered else known[kind] & (~nan if kind != "nan" else nan)
    combine = next((part for part in i.parts[1:-1] if part in ("and", "or", "xor")), "")
    first, _, second = i.operands[0].partition("|")
    third = s.read(i.operands[3], "pred") if combine else None
    s.write(first, _combined(combine, result, third))
    if second:
        s.write(second, _combined(combine, ~result, third))


def _combined(how: str, a: Array, b: Array | None) -> Array:
    if b is None:
        return a
    return a & b if how == "and" else a | b if how == "or" else a ^ b


@means("testp")
def _testp(s: State, i: Instruction) -> None:
    a = s.read(i.operands[1], i.type)
    known = {"finite": np.isfinite(a), "infinite": np.isinf(a), "number": ~np.isnan(a), "notanumber": np.isnan(a)}
    if i.parts[0] not in known:
        raise Unknown(i.text)
    s.write(i.operands[0], known[i.parts[0]])


@means("selp")
def _selp(s: State, i: Instruction) -> None:
    a, b = (s.word(operand) for operand in i.operands[1:3])
    s.write(i.operands[0], np.where(s.read(i.operands[3], "pred"), a, b))


@means("trap", "brkpt")
def _trap(s: State, i: Instruction) -> None:
    raise Fault("the kernel stops by itself")
