"""What the operations of `ops.table` are in LLVM IR: once, for the CPU and for every GPU.

    f.fast = "contract "
    MEANINGS["arith.addf"](f, Asked("arith.addf", ("f32", "f32"), "f32"), [x, y])     # fadd contract <8 x float> %x, %y

An entry takes the function under construction, what is asked, and operands of one number of lanes; it gives the result.
Back ends differ in how a bf16 is held (`Function.bf16`) and in whether halves are computed as they are
(`Function.has_halves`); a vendor may put an entry of its own in the place of one here, such as an approximate division.
Integer division follows docs/reference/semantics.md: it never traps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from weft.base import Span, Unsupported, registry
from weft.ops import ELEMENTS
from weft.ops.casts import FLOAT_PREDICATES, INTEGER_PREDICATES, predicate_of
from weft.ops.table import ROWS

from . import casts, vecmath
from .emit import Function
from .values import Type, Value, const, vec


class Asked(NamedTuple):
    """An operation: its name, the elements of its operands and of its result, its attributes and place."""

    name: str
    sources: tuple[str, ...]
    elem: str
    attrs: Mapping[str, Any] = {}
    span: Span | None = None
    target: str = "cpu"


Meaning = Callable[[Function, Asked, list[Value]], Value]
MEANINGS: dict[str, Meaning] = {}
"""By the name in lane programs, and in tile IR where that has operations of its own."""


def meaning_of(name: str) -> Meaning | None:
    """The entry of an operation of tile IR or of a lane program; None if it has none."""
    meaning = MEANINGS.get(name)
    if meaning is None and name in ROWS and ROWS[name].lane:
        meaning = MEANINGS.get(ROWS[name].lane.partition(" ")[0])
    return meaning


meaning = registry(MEANINGS)
"""Registers the entry of one or more operations."""


def type_of(f: Function, elem: str, lanes: int = 0) -> Type:
    """The LLVM type that holds an element."""
    return vec(f.bf16 if elem == "bf16" else ELEMENTS[elem].llvm, lanes)


# -- integers ---------------------------------------------------------------------------------------------------------


def _instruction(llvm: str) -> Meaning:
    return lambda f, op, a: f.bin(llvm, a[0], a[1])


def _intrinsic(llvm: str, of_bits: Callable[[Function, list[Value]], Value], *extra: Value) -> Meaning:
    """An intrinsic; not every target has it for i1, where it comes to an instruction."""

    def emit(f: Function, op: Asked, a: list[Value]) -> Value:
        return of_bits(f, a) if a[0].type.elem == "i1" else f.intrinsic(llvm, a[0].type, [*a, *extra])

    return emit


def _both(f: Function, a: list[Value]) -> Value:
    return f.and_(a[0], a[1])


def _either(f: Function, a: list[Value]) -> Value:
    return f.or_(a[0], a[1])


def _itself(f: Function, a: list[Value]) -> Value:
    return a[0]


def _other(f: Function, a: list[Value]) -> Value:
    return f.xor(a[0], const(a[0].type, 1))


_FALSE = const(vec("i1", 0), 0)
MEANINGS |= {f"arith.{name}i": _instruction(name) for name in ("add", "sub", "mul", "and", "or", "xor")}
MEANINGS |= {"arith.maxsi": _intrinsic("smax", _both), "arith.minsi": _intrinsic("smin", _either)}
MEANINGS |= {"arith.maxui": _intrinsic("umax", _either), "arith.minui": _intrinsic("umin", _both)}
MEANINGS |= {f"math.{name}": _intrinsic(name, _other, _FALSE) for name in ("ctlz", "cttz")}
MEANINGS |= {"math.ctpop": _intrinsic("ctpop", _itself), "math.absi": _intrinsic("abs", _itself, _FALSE)}


def _known(v: Value) -> int | None:
    """The integer that an operand is, in all lanes."""
    text = v.name.removeprefix("splat (").rstrip(")").split(" ")[-1]
    return int(text) if text.lstrip("-").isdigit() else None


@meaning("arith.shli", "arith.shrui", "arith.shrsi")
def _shift(f: Function, op: Asked, a: list[Value]) -> Value:
    llvm = {"arith.shli": "shl", "arith.shrui": "lshr", "arith.shrsi": "ashr"}[op.name]
    bits = a[0].type.bits
    amount = a[1].name
    if amount.lstrip("-").isdigit() and 0 <= int(amount) < bits:
        return f.bin(llvm, a[0], a[1])
    limit = const(a[1].type, bits - 1)
    inside = f.icmp("ule", a[1], limit)
    shifted = f.bin(llvm, a[0], f.select(inside, a[1], limit))
    return shifted if llvm == "ashr" else f.select(inside, shifted, const(a[0].type, 0))


@meaning("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
def _divide(f: Function, op: Asked, a: list[Value]) -> Value:
    name = op.name.removeprefix("arith.")
    return _defined(f, ("s" if name.endswith("si") else "u") + name[:3], *a)


def _defined(f: Function, llvm: str, x: Value, y: Value) -> Value:
    """A quotient or remainder that is defined for every divisor: by 0 the quotient is 0 and the remainder x."""
    signed, remainder = llvm.startswith("s"), llvm.endswith("rem")
    if _known(y) not in (None, 0, -1):
        return f.bin(llvm, x, y)
    one, zero = const(y.type, 1), const(y.type, 0)
    is_zero = f.icmp("eq", y, zero)
    if signed:
        minus = f.icmp("eq", y, const(y.type, -1))
        safe = f.select(f.or_(is_zero, minus), one, y)
        if remainder:
            result = f.select(minus, zero, _quotient(f, llvm, x, safe))
        else:
            result = f.select(minus, f.sub(zero, x), _quotient(f, llvm, x, safe))
    else:
        result = _quotient(f, llvm, x, f.select(is_zero, one, y))
    return f.select(is_zero, x if remainder else zero, result)


def _quotient(f: Function, llvm: str, x: Value, y: Value) -> Value:
    """Division by a safe divisor; 32-bit vectors through double precision, which is exact and, unlike integer division,
    has lanes.
    """
    if not x.type.lanes or x.type.bits > 32:
        return f.bin(llvm, x, y)
    signed = llvm.startswith("s")
    wide = x.type.with_elem("double")
    up, down = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    q = f.cast(down, f.fdiv(f.cast(up, x, wide), f.cast(up, y, wide)), x.type)
    return f.sub(x, f.mul(q, y)) if llvm.endswith("rem") else q


@meaning("arith.ceildivui")
def _quotient_above(f: Function, op: Asked, a: list[Value]) -> Value:
    x, y = a
    one, zero = const(x.type, 1), const(x.type, 0)
    q = _defined(f, "udiv", f.sub(x, one), y)
    return f.select(f.or_(f.icmp("eq", x, zero), f.icmp("eq", y, zero)), zero, f.add(q, one))


@meaning("arith.floordivsi", "arith.ceildivsi")
def _rounded_quotient(f: Function, op: Asked, a: list[Value]) -> Value:
    x, y = a
    q = _defined(f, "sdiv", x, y)
    r = f.sub(x, f.mul(q, y))
    inexact = f.and_(f.icmp("ne", r, const(x.type, 0)), f.icmp("ne", y, const(y.type, 0)))
    differ = f.icmp("slt", f.xor(x, y), const(x.type, 0))
    if op.name == "arith.floordivsi":
        return f.sub(q, f.cast("zext", f.and_(inexact, differ), x.type))
    same = f.xor(differ, const(differ.type, 1))
    return f.add(q, f.cast("zext", f.and_(inexact, same), x.type))


@meaning("arith.mulhui", "arith.mulhsi")
def upper_half(f: Function, op: Asked, a: list[Value]) -> Value:
    """The upper half of a product."""
    bits = a[0].type.bits
    wide, extend = a[0].type.with_elem(f"i{2 * bits}"), "sext" if op.name.endswith("si") else "zext"
    product = f.mul(f.cast(extend, a[0], wide), f.cast(extend, a[1], wide))
    return f.cast("trunc", f.lshr(product, const(wide, bits)), a[0].type)


@meaning("arith.cmpi")
def _compare_integers(f: Function, op: Asked, a: list[Value]) -> Value:
    return f.icmp(predicate_of(op.attrs, INTEGER_PREDICATES), a[0], a[1])


@meaning("select")
def _select(f: Function, op: Asked, a: list[Value]) -> Value:
    return f.select(a[0], a[1], a[2])


# -- floats -----------------------------------------------------------------------------------------------------------


def widen(f: Function, elem: str, v: Value) -> Value:
    """A value ready for LLVM's floating-point instructions: fp8, and bf16 that is held as bits, become float; so do
    halves where LLVM would call a function to convert each of them.
    """
    return casts.convert_float(f, v, elem, "f32") if _is_bits(f, elem) else v


def narrow(f: Function, elem: str, v: Value) -> Value:
    """The inverse of `widen`, rounding to nearest even."""
    return casts.convert_float(f, v, "f32", elem) if _is_bits(f, elem) else v


def _is_bits(f: Function, elem: str) -> bool:
    in_calls = elem == "f16" and not f.module.converts_half
    return in_calls or elem in casts.SMALL or (elem == "bf16" and f.bf16 == "i16")


Compute = Callable[[Function, list[Value]], Value]
ARITHMETIC: dict[str, Compute] = {
    "arith.addf": lambda f, a: f.fadd(a[0], a[1]),
    "arith.subf": lambda f, a: f.fsub(a[0], a[1]),
    "arith.mulf": lambda f, a: f.fmul(a[0], a[1]),
    "arith.divf": lambda f, a: f.fdiv(a[0], a[1]),
    "arith.negf": lambda f, a: f.fneg(a[0]),
    "arith.maximumf": lambda f, a: extremum(f, "ogt", a, True),
    "arith.minimumf": lambda f, a: extremum(f, "olt", a, True),
    "arith.maxnumf": lambda f, a: extremum(f, "ogt", a, False),
    "arith.minnumf": lambda f, a: extremum(f, "olt", a, False),
}
"""Operations on values that LLVM computes with as they are."""


def _same(llvm: str) -> Compute:
    return lambda f, a: f.intrinsic(llvm, a[0].type, a)


for _name in ("copysign", "sqrt", "floor", "ceil", "trunc", "round", "roundeven"):
    ARITHMETIC[f"math.{_name}"] = _same(_name)
ARITHMETIC["math.absf"] = _same("fabs")


SIGNS = ("arith.negf", "math.absf", "math.copysign")


def _on_floats(name: str, compute: Compute) -> Meaning:
    def emit(f: Function, op: Asked, a: list[Value]) -> Value:
        elem = op.elem
        if not _is_bits(f, elem) or (elem == "f16" and name in SIGNS):
            return compute(f, a)
        return narrow(f, elem, compute(f, [widen(f, elem, v) for v in a]))

    return emit


MEANINGS |= {name: _on_floats(name, compute) for name, compute in ARITHMETIC.items()}


def extremum(f: Function, pred: str, a: list[Value], propagate: bool) -> Value:
    """max or min where a NaN wins (`propagate`) or loses. Compare-and-select is one instruction on most hosts."""
    x, y = a
    best = f.select(f.fcmp(pred, f.bound(x), f.bound(y)), x, y)  # a NaN in either operand gives y
    if propagate:
        return f.select(f.fcmp("uno", x, x), x, best)
    return f.select(f.fcmp("uno", y, y), x, best)


@meaning("tt.clampf")
def _clamp(f: Function, op: Asked, a: list[Value]) -> Value:
    x, low, high = (widen(f, op.elem, v) for v in a)
    clamped = extremum(f, "olt", [high, extremum(f, "ogt", [low, x], False)], False)
    if op.attrs.get("propagateNan", 0) not in (0, "none"):
        clamped = f.select(f.fcmp("uno", x, x), x, clamped)
    return narrow(f, op.elem, clamped)


@meaning("arith.cmpf")
def _compare_floats(f: Function, op: Asked, a: list[Value]) -> Value:
    x, y = (widen(f, op.sources[0], v) for v in a)
    return f.fcmp(predicate_of(op.attrs, FLOAT_PREDICATES), f.bound(x), f.bound(y))


@meaning("math.fma")
def _fma(f: Function, op: Asked, a: list[Value]) -> Value:
    """a*b + c, rounded once."""
    elem = op.elem
    if f.has_halves or elem not in ("f16", "bf16"):
        x, y, z = (widen(f, elem, v) for v in a)
        return narrow(f, elem, f.fma(x, y, z))
    x, y, z = (casts.convert_float(f, v, elem, "f32") for v in a)
    product = f.fmul(x, y)
    total = f.fadd(product, z) if elem == "f16" else f.fma(x, y, z)  # bf16: the product alone may be too large
    return casts.convert_float(f, _to_odd(f, total, product, z), "f32", elem)


def _to_odd(f: Function, total: Value, product: Value, z: Value) -> Value:
    """product + z in single precision, from its rounding to nearest (`total`): rounded to odd instead, of two singles
    around the exact value to the one with the odd last bit. From there rounding to half precision goes the right way.
    The product of two halves is exact in single precision.
    """
    ints = total.type.with_elem("i32")
    part = f.fsub(total, product)
    error = f.fadd(f.fsub(product, f.fsub(total, part)), f.fsub(z, part))  # total + error is exact
    bits = f.bitcast(total, ints)
    zero = const(total.type, 0.0)
    even = f.icmp("eq", f.and_(bits, const(ints, 1)), const(ints, 0))
    larger = f.icmp("eq", f.fcmp("ogt", error, zero), f.fcmp("ogt", total, zero))  # the exact one, in magnitude
    step = f.select(larger, const(ints, 1), const(ints, -1))
    moved = f.select(even, f.add(bits, step), bits)
    return f.bitcast(f.select(f.fcmp("one", error, zero), moved, bits), total.type)


# -- functions --------------------------------------------------------------------------------------------------------


def through_f32(f: Function, elem: str, a: list[Value], compute: Callable[[str, list[Value]], Value]) -> Value:
    """Smaller floats are computed in f32 and rounded."""
    if elem in ("f32", "f64"):
        return compute(elem, a)
    wide = compute("f32", [casts.convert_float(f, v, elem, "f32") for v in a])
    return casts.convert_float(f, wide, "f32", elem)


def call_library(f: Function, name: str, elem: str, a: list[Value]) -> Value:
    """A function of the library of mathematical functions, or what a vendor has in its place for f32."""
    return vecmath.call(f, f.instead.get(name, name) if elem == "f32" else name, a)


def _function(name: str) -> Meaning:
    return lambda f, op, a: through_f32(f, op.elem, a, lambda elem, x: call_library(f, name, elem, x))


_LIBRARY = {"powf": "pow"}
"""Functions that the library calls by another name."""
_LEFT = [name for name in ROWS if name.startswith("math.") and name not in MEANINGS]
MEANINGS |= {name: _function(_LIBRARY.get(name[5:], name[5:])) for name in _LEFT}


@meaning("arith.remf")
def _remainder(f: Function, op: Asked, a: list[Value]) -> Value:
    return through_f32(f, op.elem, a, lambda elem, x: call_library(f, "fmod", elem, x))


def library_function(f: Function, op: Asked, symbol: str, a: list[Value]) -> Value:
    """A function of CUDA's or AMD's library by its symbol, or by the generic name."""
    name = vecmath.symbol_to_name.get(symbol, (symbol, ""))[0]
    elem = next((e for e in op.sources if e[0] == "f"), op.sources[0])
    if not vecmath.has(name, type_of(f, elem).elem):
        raise Unsupported(f"the external function `{symbol}` of {elem}", op.target, op.span)
    result = call_library(f, name, elem, a)
    want = type_of(f, op.elem, result.type.lanes)
    if result.type != want and not want.is_float and not result.type.is_float:
        return f.cast("trunc" if want.bits < result.type.bits else "zext", result, want)
    return result


# -- casts ------------------------------------------------------------------------------------------------------------


def _cast(llvm: str) -> Meaning:
    return lambda f, op, a: f.cast(llvm, a[0], type_of(f, op.elem, a[0].type.lanes))


MEANINGS |= {"arith.extsi": _cast("sext"), "arith.extui": _cast("zext"), "arith.trunci": _cast("trunc")}
MEANINGS["arith.bitcast"] = _cast("bitcast")


@meaning("arith.index_cast")
def _index_cast(f: Function, op: Asked, a: list[Value]) -> Value:
    to = type_of(f, op.elem, a[0].type.lanes)
    return f.cast("trunc" if to.bits <= a[0].type.bits else "sext", a[0], to)


def rounds_to_zero(attrs: Mapping[str, Any]) -> bool:
    """`rounding` as tile IR numbers it, or `roundingmode` as MLIR does."""
    return attrs.get("rounding") in (0, "rtz") or attrs.get("roundingmode") in (1, 3, "toward_zero", "rtz")


@meaning("arith.extf", "arith.truncf")
def _float_cast(f: Function, op: Asked, a: list[Value]) -> Value:
    return casts.convert_float(f, a[0], op.sources[0], op.elem, toward_zero=rounds_to_zero(op.attrs))


@meaning("arith.sitofp", "arith.uitofp")
def _int_to_float(f: Function, op: Asked, a: list[Value]) -> Value:
    elem, llvm = op.elem, op.name.removeprefix("arith.")
    x, bits = a[0], a[0].type.bits
    if elem in ("f32", "f64") or (f.has_halves and elem == "f16" and bits <= 32):
        return f.cast(llvm, x, type_of(f, elem, x.type.lanes))
    exact = "f32"
    if bits > 24:
        exact = "f64"  # holds the integer, so that it is rounded once; halves of 2^24 and more are infinite anyway
        if bits > 53 and elem != "f16":
            x = _sticky(f, x, llvm == "sitofp")
    return casts.convert_float(f, f.cast(llvm, x, type_of(f, exact, x.type.lanes)), exact, elem)


def _sticky(f: Function, x: Value, signed: bool) -> Value:
    """An integer of 64 bits that a double holds and that rounds to a few bits as `x` does: from 2^40 on, the low 16
    bits give way to the one above them, which is set where there were any.
    """
    type, limit = x.type, 1 << 40
    low = f.icmp("ne", f.and_(x, const(type, 0xFFFF)), const(type, 0))
    upper = f.or_(f.and_(x, const(type, -0x10000)), f.select(low, const(type, 0x10000), const(type, 0)))
    moved = f.add(x, const(type, limit)) if signed else x
    return f.select(f.icmp("ult", moved, const(type, 2 * limit)), x, upper)


@meaning("arith.fptosi", "arith.fptoui")
def _float_to_int(f: Function, op: Asked, a: list[Value]) -> Value:
    x = a[0]
    if op.sources[0] not in ("f32", "f64"):  # LLVM makes the least i16 of a NaN that is a half
        x = casts.convert_float(f, x, op.sources[0], "f32")
    to = type_of(f, op.elem, x.type.lanes)
    if op.elem == "i1":
        return f.fcmp("une", x, const(x.type, 0.0))
    return casts.to_integer(f, x, to, signed=op.name == "arith.fptosi")
