"""Elementwise operations on LLVM scalars and vectors, one table from the IR's operation names.

Each entry takes the function under construction, the program's op and its operands as LLVM values of one lane count,
and gives the result. Half precision is computed by LLVM in single precision and rounded after each operation; bfloat16
is kept as its bits (`i16`) and widened, computed and rounded here, because not every host has instructions for it.
Integer division follows docs/semantics.md: it never traps.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.cpu.program import Op
from weft.backends.llvm import casts, vecmath
from weft.backends.llvm.emit import INTEGER_INSTRUCTIONS, Function, Type, Value, const, vec
from weft.base import Unsupported
from weft.ops import ELEMENTS

Emitter = Callable[[Function, Op, list[Value]], Value]

LLVM_ELEMENT = {**{e.name: e.llvm for e in ELEMENTS.values()}, "bf16": "i16", "ptr": "ptr"}


def llvm_type(elem: str, lanes: int = 0) -> Type:
    """The LLVM type that holds an element: bf16 and fp8 as their bits."""
    return vec(LLVM_ELEMENT.get(elem, elem), lanes)


def memory_type(elem: str, lanes: int = 0) -> Type:
    """As `llvm_type`, but as it lies in memory: i1 takes a byte."""
    return vec("i8", lanes) if elem == "i1" else llvm_type(elem, lanes)


EMITTERS: dict[str, Emitter] = {}


def emitter(*names: str) -> Callable[[Emitter], Emitter]:
    """Register the emission of one or more operations."""

    def register(fn: Emitter) -> Emitter:
        for name in names:
            if name in EMITTERS:
                raise ValueError(f"{name} is registered twice")
            EMITTERS[name] = fn
        return fn

    return register


def _integer(name: str, llvm: str) -> None:
    EMITTERS[name] = lambda f, op, a: f.bin(llvm, a[0], a[1])


for _name, _llvm in INTEGER_INSTRUCTIONS.items():
    _integer(_name, _llvm)


@emitter("arith.shli", "arith.shrui", "arith.shrsi")
def _shift(f: Function, op: Op, a: list[Value]) -> Value:
    llvm = {"arith.shli": "shl", "arith.shrui": "lshr", "arith.shrsi": "ashr"}[op.name]
    bits = a[0].type.bits
    known = a[1].name
    if known.lstrip("-").isdigit() and 0 <= int(known) < bits:
        return f.bin(llvm, a[0], a[1])
    limit = const(a[1].type, bits - 1)
    inside = f.icmp("ule", a[1], limit)
    if llvm == "ashr":
        return f.bin(llvm, a[0], f.select(inside, a[1], limit))
    shifted = f.bin(llvm, a[0], f.select(inside, a[1], limit))
    return f.select(inside, shifted, const(a[0].type, 0))


@emitter(
    "arith.divsi", "arith.remsi", "arith.divui", "arith.remui", "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"
)
def _divide(f: Function, op: Op, a: list[Value]) -> Value:
    x, y = a
    name = op.name.removeprefix("arith.")
    if name in ("floordivsi", "ceildivsi", "ceildivui"):
        return _rounded_division(f, name, x, y)
    return _defined(f, ("s" if name.endswith("si") else "u") + ("rem" if name.startswith("rem") else "div"), x, y)


def _defined(f: Function, llvm: str, x: Value, y: Value) -> Value:
    """A quotient or remainder that is defined for every divisor: by 0 the quotient is 0 and the remainder x."""
    signed, remainder = llvm.startswith("s"), llvm.endswith("rem")
    known = y.name.removeprefix("splat (").rstrip(")").split(" ")[-1]
    if known.lstrip("-").isdigit() and int(known) not in (0, -1):
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


def _rounded_division(f: Function, name: str, x: Value, y: Value) -> Value:
    if name == "ceildivui":
        one = const(x.type, 1)
        q = _defined(f, "udiv", f.sub(x, one), y)
        none = f.or_(f.icmp("eq", x, const(x.type, 0)), f.icmp("eq", y, const(y.type, 0)))
        return f.select(none, const(x.type, 0), f.add(q, one))
    q = _defined(f, "sdiv", x, y)
    r = f.sub(x, f.mul(q, y))
    inexact = f.and_(f.icmp("ne", r, const(x.type, 0)), f.icmp("ne", y, const(y.type, 0)))
    differ = f.icmp("slt", f.xor(x, y), const(x.type, 0))
    if name == "floordivsi":
        return f.sub(q, f.cast("zext", f.and_(inexact, differ), x.type))
    same = f.xor(differ, const(differ.type, 1))
    return f.add(q, f.cast("zext", f.and_(inexact, same), x.type))


INT_PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]
FLOAT_PREDICATES = [
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
]


@emitter("arith.cmpi")
def _cmpi(f: Function, op: Op, a: list[Value]) -> Value:
    return f.icmp(INT_PREDICATES[op.attrs["predicate"]], a[0], a[1])


@emitter("arith.cmpf")
def _cmpf(f: Function, op: Op, a: list[Value]) -> Value:
    elem = op.args[0].elem
    x, y = (widen(f, elem, v) for v in a)
    return f.fcmp(FLOAT_PREDICATES[op.attrs["predicate"]], x, y)


@emitter("arith.select")
def _select(f: Function, op: Op, a: list[Value]) -> Value:
    return f.select(a[0], a[1], a[2])


for _name, _llvm in {
    "arith.maxsi": "smax",
    "arith.minsi": "smin",
    "arith.maxui": "umax",
    "arith.minui": "umin",
}.items():
    EMITTERS[_name] = lambda f, op, a, llvm=_llvm: f.intrinsic(llvm, a[0].type, a)  # type: ignore[misc]


def widen(f: Function, elem: str, v: Value) -> Value:
    """A value ready for LLVM's floating-point instructions: bf16 and fp8 become float."""
    if elem == "bf16" or elem.startswith("f8"):
        return casts.convert_float(f, v, elem, "f32")
    return v


def narrow(f: Function, elem: str, v: Value) -> Value:
    """The inverse of `widen`, rounding to nearest even."""
    if elem == "bf16" or elem.startswith("f8"):
        return casts.convert_float(f, v, "f32", elem)
    return v


FLOAT_ARITHMETIC: dict[str, Callable[[Function, list[Value]], Value]] = {}
"""The same operations on values that LLVM computes with as they are."""


def _float(name: str, compute: Callable[[Function, list[Value]], Value]) -> None:
    FLOAT_ARITHMETIC[name] = compute

    def emit(f: Function, op: Op, a: list[Value]) -> Value:
        elem = op.result.elem
        return narrow(f, elem, compute(f, [widen(f, elem, v) for v in a]))

    EMITTERS[name] = emit


_float("arith.addf", lambda f, a: f.fadd(a[0], a[1]))
_float("arith.subf", lambda f, a: f.fsub(a[0], a[1]))
_float("arith.mulf", lambda f, a: f.fmul(a[0], a[1]))
_float("arith.divf", lambda f, a: f.fdiv(a[0], a[1]))
_float("tt.precise_divf", lambda f, a: f.fdiv(a[0], a[1]))
_float("arith.negf", lambda f, a: f.fneg(a[0]))
_float("math.absf", lambda f, a: f.intrinsic("fabs", a[0].type, a))
_float("math.copysign", lambda f, a: f.intrinsic("copysign", a[0].type, a))
_float("math.sqrt", lambda f, a: f.intrinsic("sqrt", a[0].type, a))
_float("tt.precise_sqrt", lambda f, a: f.intrinsic("sqrt", a[0].type, a))
_float("math.floor", lambda f, a: f.intrinsic("floor", a[0].type, a))
_float("math.ceil", lambda f, a: f.intrinsic("ceil", a[0].type, a))
_float("math.trunc", lambda f, a: f.intrinsic("trunc", a[0].type, a))
_float("math.round", lambda f, a: f.intrinsic("round", a[0].type, a))
_float("math.roundeven", lambda f, a: f.intrinsic("roundeven", a[0].type, a))
_float("arith.maximumf", lambda f, a: _extremum(f, "ogt", a, True))
_float("arith.minimumf", lambda f, a: _extremum(f, "olt", a, True))
_float("arith.maxnumf", lambda f, a: _extremum(f, "ogt", a, False))
_float("arith.minnumf", lambda f, a: _extremum(f, "olt", a, False))
_float("arith.remf", lambda f, a: vecmath.call(f, "fmod", a))


@emitter("math.fma")
def _fma(f: Function, op: Op, a: list[Value]) -> Value:
    """a*b + c, rounded once."""
    elem = op.result.elem
    if elem not in ("f16", "bf16"):
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


def _extremum(f: Function, pred: str, a: list[Value], propagate: bool) -> Value:
    """max or min where a NaN wins (`propagate`) or loses. Compare-and-select is one instruction on most hosts."""
    x, y = a
    best = f.select(f.fcmp(pred, x, y), x, y)  # a NaN in either operand gives y
    if propagate:
        return f.select(f.fcmp("uno", x, x), x, best)
    return f.select(f.fcmp("uno", y, y), x, best)


def _math(name: str, function: str) -> None:
    def emit(f: Function, op: Op, a: list[Value]) -> Value:
        elem = op.result.elem
        wide = [widen(f, elem, v) for v in a]
        if elem == "f16":
            wide = [f.cast("fpext", v, v.type.with_elem("float")) for v in a]
        result = vecmath.call(f, function, wide)
        if elem == "f16":
            return f.cast("fptrunc", result, a[0].type)
        return narrow(f, elem, result)

    EMITTERS[name] = emit


for _name in (
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "tan",
    "tanh",
    "erf",
    "rsqrt",
    "log1p",
    "log10",
    "expm1",
    "atan",
    "atan2",
    "powf",
    "cbrt",
    "asin",
    "acos",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
):
    _math(f"math.{_name}", "pow" if _name == "powf" else _name)


@emitter("math.absi")
def _absi(f: Function, op: Op, a: list[Value]) -> Value:
    return f.intrinsic("smax", a[0].type, [a[0], f.sub(const(a[0].type, 0), a[0])])


@emitter("math.ctlz", "math.cttz", "math.ctpop")
def _count(f: Function, op: Op, a: list[Value]) -> Value:
    name = op.name.removeprefix("math.")
    extra = [] if name == "ctpop" else [const(vec("i1", 0), 0)]
    return f.intrinsic(name, a[0].type, [a[0], *extra])


@emitter("tt.mulhiui")
def _mulhiui(f: Function, op: Op, a: list[Value]) -> Value:
    bits = a[0].type.bits
    wide = a[0].type.with_elem(f"i{2 * bits}")
    product = f.mul(f.cast("zext", a[0], wide), f.cast("zext", a[1], wide))
    return f.cast("trunc", f.lshr(product, const(wide, bits)), a[0].type)


@emitter("tt.clampf")
def _clampf(f: Function, op: Op, a: list[Value]) -> Value:
    elem = op.result.elem
    x, low, high = (widen(f, elem, v) for v in a)
    clamped = _extremum(f, "olt", [high, _extremum(f, "ogt", [low, x], False)], False)
    propagate = op.attrs.get("propagateNan", 0)
    if propagate not in (0, "none"):
        clamped = f.select(f.fcmp("uno", x, x), x, clamped)
    return narrow(f, elem, clamped)


@emitter("tt.extern_elementwise")
def _extern(f: Function, op: Op, a: list[Value]) -> Value:
    symbol = op.attrs["symbol"]
    found = vecmath.symbol_to_name.get(symbol)
    if found is None:
        raise Unsupported(f"the external function `{symbol}`", "cpu", span=op.span)
    result = vecmath.call(f, found[0], a)
    want = llvm_type(op.result.elem, result.type.lanes)
    if result.type != want and not want.is_float and not result.type.is_float:
        return f.cast("trunc" if want.bits < result.type.bits else "zext", result, want)
    return result


def _cast(name: str, llvm: str) -> None:
    EMITTERS[name] = lambda f, op, a: f.cast(llvm, a[0], llvm_type(op.result.elem, a[0].type.lanes))


for _name, _llvm in {"arith.extsi": "sext", "arith.extui": "zext", "arith.trunci": "trunc"}.items():
    _cast(_name, _llvm)


@emitter("arith.index_cast", "arith.index_castui")
def _index_cast(f: Function, op: Op, a: list[Value]) -> Value:
    to = llvm_type(op.result.elem, a[0].type.lanes)
    if to.bits <= a[0].type.bits:
        return f.cast("trunc", a[0], to)
    return f.cast("zext" if op.name.endswith("ui") else "sext", a[0], to)


@emitter("arith.extf", "arith.truncf", "tt.fp_to_fp")
def _float_cast(f: Function, op: Op, a: list[Value]) -> Value:
    return casts.convert_float(f, a[0], op.args[0].elem, op.result.elem, toward_zero=_rounds_to_zero(op))


def _rounds_to_zero(op: Op) -> bool:
    """tt.fp_to_fp has `rounding`: rtz (0) or rtne (1); arith.truncf has none, or MLIR's numbering, where toward zero is
    1.
    """
    if op.name == "tt.fp_to_fp":
        return op.attrs.get("rounding") in (0, "rtz")
    return op.attrs.get("roundingmode") in (1, 3, "toward_zero")


@emitter("arith.sitofp", "arith.uitofp")
def _int_to_float(f: Function, op: Op, a: list[Value]) -> Value:
    elem = op.result.elem
    llvm = op.name.removeprefix("arith.")
    target = "float" if elem in ("bf16", "f16") or elem.startswith("f8") else llvm_type(elem).elem
    x, bits = a[0], a[0].type.bits
    if elem in ("f16", "bf16") and bits > 24:
        target = "double"  # holds the integer, so that it is rounded once; halves of 2^24 and more are infinite anyway
        if elem == "bf16" and bits > 53:
            x = _sticky(f, x, llvm == "sitofp")
    wide = f.cast(llvm, x, x.type.with_elem(target))
    if elem in ("f16", "bf16"):
        return casts.convert_float(f, wide, "f64" if target == "double" else "f32", elem)
    return narrow(f, elem, wide)


def _sticky(f: Function, x: Value, signed: bool) -> Value:
    """An integer of 64 bits that a double holds and that rounds to a few bits as `x` does: from 2^40 on, the low 16
    bits give way to the one above them, which is set where there were any.
    """
    type, limit = x.type, 1 << 40
    low = f.icmp("ne", f.and_(x, const(type, 0xFFFF)), const(type, 0))
    upper = f.or_(f.and_(x, const(type, -0x10000)), f.select(low, const(type, 0x10000), const(type, 0)))
    moved = f.add(x, const(type, limit)) if signed else x
    return f.select(f.icmp("ult", moved, const(type, 2 * limit)), x, upper)


@emitter("arith.fptosi", "arith.fptoui")
def _float_to_int(f: Function, op: Op, a: list[Value]) -> Value:
    x = widen(f, op.args[0].elem, a[0])
    to = llvm_type(op.result.elem, x.type.lanes)
    name = "fptosi.sat" if op.name.endswith("si") else "fptoui.sat"
    suffix = f"{_mangled(to)}.{_mangled(x.type)}"
    return f.call(f"llvm.{name}.{suffix}", to, [x])


def _mangled(type: Type) -> str:
    elem = {"half": "f16", "float": "f32", "double": "f64"}.get(type.elem, type.elem)
    return f"v{type.lanes}{elem}" if type.lanes else elem


@emitter("arith.bitcast", "tt.bitcast")
def _bitcast(f: Function, op: Op, a: list[Value]) -> Value:
    return f.bitcast(a[0], llvm_type(op.result.elem, a[0].type.lanes))


@emitter("tt.int_to_ptr")
def _int_to_ptr(f: Function, op: Op, a: list[Value]) -> Value:
    return f.cast("inttoptr", a[0], vec("ptr", a[0].type.lanes))


@emitter("tt.ptr_to_int")
def _ptr_to_int(f: Function, op: Op, a: list[Value]) -> Value:
    return f.cast("ptrtoint", a[0], vec("i64", a[0].type.lanes))
