"""Element-wise operations, register by register, as docs/semantics.md has them.

Each entry of `SCALARS` gives the result for one register, its operands spelled out. Registers that repeat are computed
once. Addition and multiplication of 32 and 64 bits keep constants apart (see `Sum`): addresses of one tile differ by
constants mostly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.backends.llvm import casts, vecmath
from weft.ir.lane import LaneOp

from .emitter import BITS, EMITTERS, LLVM, PURE, Emitter, Part, Register, Sum, emitter, scalar

__all__ = ["SCALARS"]

Scalar = Callable[[Emitter, LaneOp, list[str]], str]
SCALARS: dict[str, Scalar] = {}
SMALL_FLOATS = tuple(casts.SMALL)


def scalars(*names: str) -> Callable[[Scalar], Scalar]:
    """Register how one register of an operation is computed."""

    def register(function: Scalar) -> Scalar:
        for name in names:
            assert name not in SCALARS, name
            SCALARS[name] = function
        return function

    return register


@emitter("arith.*", "math.*", "libdevice.*")
def _elementwise(e: Emitter, op: LaneOp) -> None:
    function = SCALARS.get(op.name) or SCALARS.get(op.name.partition(".")[0] + ".*")
    if function is None:
        raise e.fail(op, f"`{op.name}`")
    result = op.results[0]
    if op.name in PAIRED and _in_pairs(e, op):
        return
    columns = [e.names(v) for v in op.operands]
    count = result.count
    columns = [c if len(c) == count else c * count for c in columns]
    made: dict[tuple[str, ...], Register] = {}
    out: list[Register] = []
    for row in zip(*columns, strict=True):
        found = made.get(row)
        if found is None:
            found = made[row] = function(e, op, list(row))
        out.append(found)
    e.env[result] = out


# -- halves in pairs --------------------------------------------------------------------------------------------------

PAIRED = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "math.fma": "fma",
}
"""Operations that are one instruction for two halves in a word."""


PLAIN = ("fadd", "fsub", "fmul")


def _as_fma(name: str, x: str, y: str) -> tuple[str, str, str]:
    """The operands of the fma that is exactly a sum, a difference, a product: for bf16, which has no other on sm_80."""
    one, minus, zero = (f"splat (bfloat 0xR{bits})" for bits in ("3F80", "BF80", "8000"))
    return {"fadd": (x, one, y), "fsub": (y, minus, x), "fmul": (x, y, zero)}[name]


def _in_pairs(e: Emitter, op: LaneOp) -> bool:
    """Compute halves two at a time, where operands lie in words already; whether it was done."""
    result, name = op.results[0], PAIRED[op.name]
    if result.elem not in ("f16", "bf16") or result.count % 2:
        return False
    columns = [e.wide(v, result.count) for v in op.operands]
    if not any(_is_word(column[i : i + 2]) for column in columns for i in range(0, result.count, 2)):
        return False
    type = LLVM[result.elem]
    vector, out = f"<2 x {type}>", list[Register]()
    for i in range(0, result.count, 2):
        words = [e.word(column[i : i + 2], type) for column in columns]
        given = [e.pure(f"bitcast i32 {w} to {vector}") for w in words]
        if name in PLAIN and result.elem == "bf16" and e.target.capability < 90:
            found = e.pure(e.call("llvm.fma.v2bf16", vector, [(vector, x) for x in _as_fma(name, *given)]))
        elif name in PLAIN:
            found = e.pure(f"{name} {e.fast}{vector} {given[0]}, {given[1]}")
        else:
            text = e.call(f"llvm.{name}.v2{MANGLED[type]}", vector, [(vector, g) for g in given])
            found = e.pure(text)
        out += e.parts(e.pure(f"bitcast {vector} {found} to i32"), type, 2)
    e.env[result] = out
    return True


def _is_word(pair: list[Register]) -> bool:
    a, b = pair
    return isinstance(a, Part) and isinstance(b, Part) and a.word == b.word and (a.index, b.index) == (0, 1)


# -- integers ---------------------------------------------------------------------------------------------------------


def _split(register: Register) -> tuple[str, int]:
    if isinstance(register, Sum):
        return register.base, register.offset
    return (register, 0) if isinstance(register, str) else ("", 0)


def _lazy(e: Emitter, op: LaneOp, combine: Callable[[Emitter, str, Register, Register], Register]) -> None:
    """Apply to registers that may be sums; the operands' registers are paired as for any operation."""
    result = op.results[0]
    left, right = (e.wide(v, result.count) for v in op.operands)
    made: dict[tuple[Any, ...], Register] = {}
    out: list[Register] = []
    for a, b in zip(left, right, strict=True):
        key = (*_split(a), *_split(b))
        found = made.get(key)
        if found is None:
            found = made[key] = combine(e, result.elem, a, b)
        out.append(found)
    e.env[result] = out


def _added(e: Emitter, type: str, a: Register, b: Register) -> Register:
    x, m = _split(a)
    y, n = _split(b)
    if not x or not y:
        base, known = x or y, e.largest.get(x or y)
    else:
        base = e.pure(f"add {type} {x}, {y}")
        if type == "i64":
            e.note_step(x, y, base)
        known = None
        if x in e.largest and y in e.largest and e.largest[x] + e.largest[y] < 1 << 31:
            known = e.largest[x] + e.largest[y]
    if known is not None:
        e.largest[base] = known
    return Sum(base, m + n, type)


def _subtracted(e: Emitter, type: str, a: Register, b: Register) -> Register:
    x, m = _split(a)
    y, n = _split(b)
    base = x
    if y:
        base = "" if x == y else e.pure(f"sub {type} {x or 0}, {y}")
    return Sum(base, m - n, type)


def _multiplied(e: Emitter, type: str, a: Register, b: Register) -> Register:
    x, m = _split(a)
    y, n = _split(b)
    if x and y:
        return e.pure(f"mul {type} {e.name(a)}, {e.name(b)}")
    base, factor = (x, n) if x else (y, m)
    if not base or not factor:
        return Sum("", m * n, type)
    known = e.largest.get(base)
    if factor != 1:
        product = e.pure(f"mul {type} {base}, {factor}")
        if type == "i64" and factor & factor - 1 == 0 and factor > 1:
            e.multiples[product] = (base, factor.bit_length() - 1)
        base = product
        if known is not None and factor > 0 and known * factor < 1 << 31:
            e.largest[base] = known * factor
    return Sum(base, m * n, type)


def _wide_arithmetic(name: str, combine: Callable[[Emitter, str, Register, Register], Register]) -> None:
    def emit(e: Emitter, op: LaneOp) -> None:
        if op.results[0].elem in ("i32", "i64"):
            _lazy(e, op, combine)
        else:
            _elementwise(e, op)

    EMITTERS[name] = emit


def _binary(name: str, llvm: str) -> None:
    SCALARS[name] = lambda e, op, a: e.pure(f"{llvm} {LLVM[op.results[0].elem]} {a[0]}, {a[1]}")


for _name, _llvm in {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}.items():
    _binary(_name, _llvm)

_wide_arithmetic("arith.addi", _added)
_wide_arithmetic("arith.subi", _subtracted)
_wide_arithmetic("arith.muli", _multiplied)


def _number(name: str) -> int | None:
    """The value of a literal."""
    return int(name) if name.lstrip("-").isdigit() else None


@scalars("arith.shli", "arith.shrui", "arith.shrsi")
def _shift(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Amounts count as unsigned; those of the width and more shift everything out."""
    llvm = {"arith.shli": "shl", "arith.shrui": "lshr", "arith.shrsi": "ashr"}[op.name]
    type = LLVM[op.results[0].elem]
    bits = BITS[type]
    known = _number(a[1])
    if known is not None and 0 <= known < bits:
        return e.ins(f"{llvm} {type} {a[0]}, {known}")
    inside = e.pure(f"icmp ult {type} {a[1]}, {bits}")
    if bits == 64:  # LLVM would drop the upper half of the amount: PTX takes 32 bits of it, and shifts everything out
        amount = e.pure(f"select i1 {inside}, i32 {e.pure(f'trunc i64 {a[1]} to i32')}, i32 64")
        text = {"shl": "shl.b64", "lshr": "shr.u64", "ashr": "shr.s64"}[llvm] + " $0, $1, $2;"
        return e.asm(text, "=l,l,r", ["i64"], [("i64", a[0]), ("i32", amount)], PURE, effects=False)[0]
    amount = e.pure(f"select i1 {inside}, {type} {a[1]}, {type} {bits - 1}")
    shifted = e.ins(f"{llvm} {type} {a[0]}, {amount}")
    return shifted if llvm == "ashr" else e.ins(f"select i1 {inside}, {type} {shifted}, {type} 0")


@scalars("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")
def _divide(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """x / 0 is 0 and x % 0 is x; the smallest value by -1 is itself, and leaves nothing."""
    signed, remainder = op.name.endswith("si"), "rem" in op.name
    type = LLVM[op.results[0].elem]
    llvm = ("s" if signed else "u") + ("rem" if remainder else "div")
    x, y = a
    known = _number(y)
    if known not in (None, 0, -1):
        return e.ins(f"{llvm} {type} {x}, {y}")
    zero = e.pure(f"icmp eq {type} {y}, 0")
    unsafe = zero
    if signed:
        minus = e.pure(f"icmp eq {type} {y}, -1")
        unsafe = e.pure(f"or i1 {zero}, {minus}")
    safe = e.pure(f"select i1 {unsafe}, {type} 1, {type} {y}")
    found = e.ins(f"{llvm} {type} {x}, {safe}")
    if signed:
        by_minus = "0" if remainder else e.ins(f"sub {type} 0, {x}")
        found = e.ins(f"select i1 {minus}, {type} {by_minus}, {type} {found}")
    return e.ins(f"select i1 {zero}, {type} {x if remainder else 0}, {type} {found}")


def _intrinsic(name: str, llvm: str) -> None:
    def emit(e: Emitter, op: LaneOp, a: list[str]) -> str:
        type = LLVM[op.results[0].elem]
        return e.ins(e.call(f"llvm.{llvm}.{MANGLED[type]}", type, [(type, x) for x in a]))

    SCALARS[name] = emit


MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"} | {f"i{n}": f"i{n}" for n in (1, 8, 16, 32, 64)}  # fmt: skip  # noqa: E501
for _name, _llvm in {
    "arith.maxsi": "smax",
    "arith.minsi": "smin",
    "arith.maxui": "umax",
    "arith.minui": "umin",
    "math.ctpop": "ctpop",
}.items():
    _intrinsic(_name, _llvm)


@scalars("math.ctlz", "math.cttz")
def _count_zeros(e: Emitter, op: LaneOp, a: list[str]) -> str:
    type = LLVM[op.results[0].elem]
    name = f"llvm.{op.name.removeprefix('math.')}.{type}"
    return e.ins(e.call(name, type, [(type, a[0]), ("i1", "false")]))


@scalars("math.absi")
def _absolute(e: Emitter, op: LaneOp, a: list[str]) -> str:
    type = LLVM[op.results[0].elem]
    return e.ins(e.call(f"llvm.abs.{type}", type, [(type, a[0]), ("i1", "false")]))


def _high_half(e: Emitter, type: str, x: str, y: str, signed: bool) -> str:
    bits, extend = BITS[type], "sext" if signed else "zext"
    wide = f"i{2 * bits}"
    left, right = (e.pure(f"{extend} {type} {v} to {wide}") for v in (x, y))
    product = e.pure(f"mul {wide} {left}, {right}")
    return e.ins(f"trunc {wide} {e.pure(f'lshr {wide} {product}, {bits}')} to {type}")


@scalars("arith.mulhui", "arith.mulhsi")
def _multiply_high(e: Emitter, op: LaneOp, a: list[str]) -> str:
    return _high_half(e, LLVM[op.results[0].elem], a[0], a[1], op.name.endswith("si"))


@emitter("arith.mului_extended", "arith.mulsi_extended")
def _multiply_extended(e: Emitter, op: LaneOp) -> None:
    low, high = op.results
    type, signed = LLVM[low.elem], "si" in op.name
    columns = [[e.name(r) for r in e.wide(v, low.count)] for v in op.operands]
    rows = list(zip(*columns, strict=True))
    e.env[low] = [e.ins(f"mul {type} {x}, {y}") for x, y in rows]
    e.env[high] = [_high_half(e, type, x, y, signed) for x, y in rows]


INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


def _predicate(value: Any, names: tuple[str, ...]) -> str:
    return value if isinstance(value, str) else names[int(value)]


@scalars("arith.cmpi")
def _compare_integers(e: Emitter, op: LaneOp, a: list[str]) -> str:
    predicate = _predicate(op.attrs["predicate"], INTEGER_PREDICATES)
    return e.pure(f"icmp {predicate} {LLVM[op.operands[0].elem]} {a[0]}, {a[1]}")


@scalars("arith.cmpf")
def _compare_floats(e: Emitter, op: LaneOp, a: list[str]) -> str:
    predicate, elem = _predicate(op.attrs["predicate"], FLOAT_PREDICATES), op.operands[0].elem
    x, y = (widened(e, elem, v) for v in a)
    return e.ins(f"fcmp {predicate} {_computed(elem)} {x}, {y}")


@emitter("select")
def _select(e: Emitter, op: LaneOp) -> None:
    """A condition that is the same for a pair of halves chooses whole words."""
    result = op.results[0]
    conditions = e.names(op.operands[0])
    conditions = conditions if len(conditions) == result.count else conditions * result.count
    type = LLVM[op.operands[1].elem]
    left, right = ([e.name(r) for r in e.wide(v, result.count)] for v in op.operands[1:])
    out: list[Register] = []
    for c, x, y in zip(conditions, left, right, strict=True):
        out.append(x if x == y else e.pure(f"select i1 {c}, {type} {x}, {type} {y}"))
    e.env[result] = out


# -- floats -----------------------------------------------------------------------------------------------------------


def _computed(elem: str) -> str:
    """The LLVM type that an element type is computed in."""
    return "float" if elem in SMALL_FLOATS else LLVM[elem]


def widened(e: Emitter, elem: str, name: str) -> str:
    """A register ready for arithmetic: fp8 as f32."""
    return convert(e, elem, "f32", name) if elem in SMALL_FLOATS else name


def narrowed(e: Emitter, elem: str, name: str) -> str:
    """The inverse of `widened`, rounding to nearest even."""
    return convert(e, "f32", elem, name) if elem in SMALL_FLOATS else name


def _float(name: str, write: Callable[[Emitter, LaneOp, str, list[str]], str]) -> None:
    """An operation computed in the type of its result; `write` takes the LLVM type."""

    def emit(e: Emitter, op: LaneOp, a: list[str]) -> str:
        elem = op.results[0].elem
        return narrowed(e, elem, write(e, op, _computed(elem), [widened(e, elem, x) for x in a]))

    SCALARS[name] = emit


def _arithmetic(llvm: str) -> Callable[[Emitter, LaneOp, str, list[str]], str]:
    return lambda e, op, type, a: e.ins(f"{llvm} {e.fast}{type} {a[0]}, {a[1]}")


def _called(llvm: str) -> Callable[[Emitter, LaneOp, str, list[str]], str]:
    return lambda e, op, type, a: e.ins(e.call(f"llvm.{llvm}.{MANGLED[type]}", type, [(type, x) for x in a]))


for _name, _llvm in {"arith.addf": "fadd", "arith.subf": "fsub", "arith.mulf": "fmul"}.items():
    _float(_name, _arithmetic(_llvm))
for _name, _llvm in {
    "math.fma": "fma",
    "math.absf": "fabs",
    "math.copysign": "copysign",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.trunc": "trunc",
    "math.round": "round",
    "math.roundeven": "rint",
}.items():
    _float(_name, _called(_llvm))
_float("arith.negf", lambda e, op, type, a: e.ins(f"fneg {type} {a[0]}"))


@scalars("arith.maxnumf", "arith.minnumf", "arith.maximumf", "arith.minimumf")
def _extremum(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Of a NaN and a number maxnumf gives the number, maximumf the NaN."""
    elem, name = op.results[0].elem, op.name.removeprefix("arith.").removesuffix("f")
    type = _computed(elem)
    x, y = (widened(e, elem, v) for v in a)
    if type == "double" and name in ("maximum", "minimum"):
        best = e.ins(e.call(f"llvm.{name[:3]}num.f64", type, [(type, x), (type, y)]))
        either = e.ins(f"fcmp uno double {x}, {y}")
        return e.ins(f"select i1 {either}, double 0x7FF8000000000000, double {best}")
    return narrowed(e, elem, e.ins(e.call(f"llvm.{name}.{MANGLED[type]}", type, [(type, x), (type, y)])))


@scalars("arith.divf")
def _quotient(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """f32 to two units in the last place, as Triton does it; `precise` is rounded once; halves go through f32."""
    elem = op.results[0].elem
    if elem == "f64" or (elem == "f32" and op.attrs.get("precise")):
        return e.ins(f"fdiv {LLVM[elem]} {a[0]}, {a[1]}")
    x, y = (convert(e, elem, "f32", v) for v in a)
    if elem == "f32":
        return e.ins(e.call("llvm.nvvm.div.full", "float", [("float", x), ("float", y)]))
    return convert(e, "f32", elem, e.ins(f"fdiv float {x}, {y}"))


@scalars("arith.remf")
def _remainder(e: Emitter, op: LaneOp, a: list[str]) -> str:
    return through_f32(e, op.results[0].elem, a, lambda elem, x: library(e, "fmod", elem, x))


# -- functions --------------------------------------------------------------------------------------------------------


def library(e: Emitter, name: str, elem: str, a: list[str]) -> str:
    """A function of the library of mathematical functions, on f32 or f64."""
    return vecmath.call(e.f, name, [e.typed(elem, x) for x in a]).name


def through_f32(e: Emitter, elem: str, a: list[str], compute: Callable[[str, list[str]], str]) -> str:
    """Smaller floats are computed in f32 and rounded."""
    if elem in ("f32", "f64"):
        return compute(elem, a)
    return convert(e, "f32", elem, compute("f32", [convert(e, elem, "f32", x) for x in a]))


def _approximate(e: Emitter, name: str, x: str) -> str:
    return e.ins(e.call(f"llvm.nvvm.{name}", "float", [("float", x)]))


LOG2_E = "0x3FF7154760000000"  # f32: 1.4426950216293335


def _exp(e: Emitter, x: str) -> str:
    return _approximate(e, "ex2.approx.f", e.ins(f"fmul {e.fast}float {x}, {LOG2_E}"))


FAST: dict[str, Callable[[Emitter, str], str]] = {
    "exp": _exp,
    "exp2": lambda e, x: _approximate(e, "ex2.approx.ftz.f", x),
    "sqrt": lambda e, x: _approximate(e, "sqrt.approx.ftz.f", x),
    "rsqrt": lambda e, x: _approximate(e, "rsqrt.approx.ftz.f", x),
}
"""Functions of f32 that are an instruction; the others are in the library."""
OTHER_NAMES = {"powf": "pow", "ipowi": "pow"}


@scalars("math.*")
def _function(e: Emitter, op: LaneOp, a: list[str]) -> str:
    name = op.name.removeprefix("math.")
    name = OTHER_NAMES.get(name, name)

    def compute(elem: str, x: list[str]) -> str:
        if elem == "f32" and name in FAST and not op.attrs.get("precise"):
            return FAST[name](e, x[0])
        if name == "sqrt":
            type = LLVM[elem]
            return e.ins(e.call(f"llvm.sqrt.{elem}", type, [(type, x[0])]))
        if not vecmath.has(name, LLVM[elem]):
            raise e.fail(op, f"`{op.name}` of {elem}")
        return library(e, name, elem, x)

    return through_f32(e, op.results[0].elem, a, compute)


@scalars("libdevice.*")
def _libdevice(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """By CUDA's symbol or by the generic name."""
    name = op.name.removeprefix("libdevice.")
    name = vecmath.symbol_to_name.get(name, (name, ""))[0]
    elem = next((v.elem for v in op.operands if v.elem[0] == "f"), op.operands[0].elem)
    if not vecmath.has(name, LLVM[elem]):
        raise e.fail(op, f"`{op.name}` of {elem}")
    found = vecmath.call(e.f, name, [e.typed(v.elem, x) for v, x in zip(op.operands, a, strict=True)])
    wanted = scalar(LLVM[op.results[0].elem])
    if found.type != wanted and not wanted.is_float and not found.type.is_float:
        return e.f.cast("trunc" if wanted.bits < found.type.bits else "zext", found, wanted).name
    return found.name


# -- casts ------------------------------------------------------------------------------------------------------------


@emitter("arith.extsi", "arith.extui")
def _extend(e: Emitter, op: LaneOp) -> None:
    """A sum that is known not to leave 31 bits stays a sum in 64 bits."""
    source, result = op.operands[0], op.results[0]
    found = e.env[source]
    if source.elem != "i32" or result.elem != "i64":
        _elementwise(e, op)
        return
    out: list[Register] = []
    for register in found:
        base, offset = _split(register)
        known = e.largest.get(base, 0 if not base else None)
        if isinstance(register, Sum) and not base and op.name == "arith.extsi":
            out.append(Sum("", offset, "i64"))
        elif isinstance(register, (Sum, str)) and known is not None and offset >= 0 and known + offset < 1 << 31:
            wide = e.pure(f"zext i32 {base} to i64") if base else ""
            out.append(Sum(wide, offset, "i64"))
        else:
            how = "sext" if op.name == "arith.extsi" else "zext"
            out.append(e.pure(f"{how} i32 {e.name(register)} to i64"))
    e.env[result] = out


def _integer_cast(name: str, llvm: str) -> None:
    def emit(e: Emitter, op: LaneOp, a: list[str]) -> str:
        return e.ins(f"{llvm} {LLVM[op.operands[0].elem]} {a[0]} to {LLVM[op.results[0].elem]}")

    SCALARS[name] = emit


for _name, _llvm in {"arith.extsi": "sext", "arith.extui": "zext", "arith.trunci": "trunc"}.items():
    _integer_cast(_name, _llvm)


@scalars("arith.index_cast", "arith.index_castui")
def _index_cast(e: Emitter, op: LaneOp, a: list[str]) -> str:
    source, to = LLVM[op.operands[0].elem], LLVM[op.results[0].elem]
    if source == to:
        return a[0]
    how = "trunc" if BITS[to] < BITS[source] else "zext" if op.name.endswith("ui") else "sext"
    return e.ins(f"{how} {source} {a[0]} to {to}")


@scalars("arith.bitcast")
def _bitcast(e: Emitter, op: LaneOp, a: list[str]) -> str:
    source, to = LLVM[op.operands[0].elem], LLVM[op.results[0].elem]
    return a[0] if source == to else e.pure(f"bitcast {source} {a[0]} to {to}")


def _toward_zero(op: LaneOp) -> bool:
    """`rounding` as tile IR numbers it, or `roundingmode` as MLIR does."""
    return op.attrs.get("rounding") in (0, "rtz") or op.attrs.get("roundingmode") in (1, 3, "toward_zero", "rtz")


@emitter("arith.extf", "arith.truncf")
def _float_cast(e: Emitter, op: LaneOp) -> None:
    """Pairs, where the processor has instructions for two at once."""
    source, result, down = op.operands[0], op.results[0], _toward_zero(op)
    found = e.env[source]
    pair = None if down else _pair_conversion(e, source.elem, result.elem)
    if pair is not None and len(found) % 2 == 0:
        e.env[result] = [r for i in range(0, len(found), 2) for r in pair(e, found[i : i + 2])]
        return
    made: dict[str, str] = {}
    out: list[Register] = []
    for name in e.names(source):
        if name not in made:
            made[name] = convert(e, source.elem, result.elem, name, down)
        out.append(made[name])
    e.env[result] = out


Pair = Callable[[Emitter, list[Register]], list[Register]]
SHORT = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}


def _pair_conversion(e: Emitter, source: str, target: str) -> Pair | None:
    """How two elements at once are converted; None if they are not."""
    if source == "f32" and target in ("f16", "bf16"):
        return lambda e, pair: _pair_to_half(e, pair, target)
    if e.target.capability < 89:
        return None
    if target in SHORT and source in ("f32", "f16", "bf16"):
        return lambda e, pair: _pair_to_small(e, pair, source, target)
    if source in SHORT and target in ("f32", "f16", "bf16"):
        return lambda e, pair: _pair_from_small(e, pair, source, target)
    return None


def _pair_to_half(e: Emitter, pair: list[Register], target: str) -> list[Register]:
    low, high = (e.name(r) for r in pair)
    vector = e.pure(f"insertelement <2 x float> poison, float {low}, i32 0")
    vector = e.pure(f"insertelement <2 x float> {vector}, float {high}, i32 1")
    halves = e.pure(f"fptrunc <2 x float> {vector} to <2 x {LLVM[target]}>")
    return e.parts(e.pure(f"bitcast <2 x {LLVM[target]}> {halves} to i32"), LLVM[target], 2)


def _pair_to_small(e: Emitter, pair: list[Register], source: str, target: str) -> list[Register]:
    e.version = max(e.version, 81)
    if source == "f16":
        text, word = f"cvt.rn.satfinite.{SHORT[target]}x2.f16x2 $0, $1;", e.word(pair, "half")
        found = e.asm(text, "=h,r", ["i16"], [("i32", word)], PURE, effects=False)[0]
    else:
        low, high = (convert(e, source, "f32", e.name(r)) for r in pair)
        text = f"cvt.rn.satfinite.{SHORT[target]}x2.f32 $0, $2, $1;"
        found = e.asm(text, "=h,f,f", ["i16"], [("float", low), ("float", high)], PURE, effects=False)[0]
    return e.parts(found, "i8", 2)


def _pair_from_small(e: Emitter, pair: list[Register], source: str, target: str) -> list[Register]:
    e.version = max(e.version, 81)
    word = e.word(pair, "i8")
    text = f"cvt.rn.f16x2.{SHORT[source]}x2 $0, $1;"
    halves = e.parts(e.asm(text, "=r,h", ["i32"], [("i16", word)], PURE, effects=False)[0], "half", 2)
    return halves if target == "f16" else [convert(e, "f16", target, e.name(h)) for h in halves]


WIDTH = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
RZ = {
    ("f32", "f16"): ("cvt.rz.f16.f32", "=h,f", "i16"),
    ("f32", "bf16"): ("cvt.rz.bf16.f32", "=h,f", "i16"),
    ("f64", "f32"): ("cvt.rz.f32.f64", "=f,d", "float"),
    ("f64", "f16"): ("cvt.rz.f16.f64", "=h,d", "i16"),
}


def convert(e: Emitter, source: str, target: str, name: str, toward_zero: bool = False) -> str:
    """A float as another: to nearest even unless `toward_zero`."""
    if source == target:
        return name
    if source in SMALL_FLOATS:
        wide = casts.convert_float(e.f, e.of_type("i8", name), source, "f32").name
        return convert(e, "f32", target, wide, toward_zero)
    if target in SMALL_FLOATS:
        if source == "f16" or source == "bf16":
            name, source = convert(e, source, "f32", name), "f32"
        return casts.convert_float(e.f, e.typed(source, name), source, target, toward_zero).name
    if WIDTH[source] < WIDTH[target]:
        return e.pure(f"fpext {LLVM[source]} {name} to {LLVM[target]}")
    if WIDTH[source] == WIDTH[target]:  # f16 and bf16
        return convert(e, "f32", target, convert(e, source, "f32", name), toward_zero)
    if toward_zero and (source, target) == ("f64", "bf16"):
        return convert(e, "f32", target, convert(e, source, "f32", name, True), True)
    if toward_zero:
        text, constraints, type = RZ[source, target]
        found = e.asm(f"{text} $0, $1;", constraints, [type], [(LLVM[source], name)], PURE, effects=False)[0]
        return found if type == LLVM[target] else e.ins(f"bitcast {type} {found} to {LLVM[target]}")
    return e.ins(f"fptrunc {LLVM[source]} {name} to {LLVM[target]}")


@scalars("arith.sitofp", "arith.uitofp")
def _from_integer(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Rounded once: to bf16 through f64, which holds integers of 32 bits, by way of rounding to odd."""
    source, elem = op.operands[0].elem, op.results[0].elem
    llvm, type = op.name.removeprefix("arith."), LLVM[op.operands[0].elem]
    if source == "i1":
        llvm = "uitofp"
    if elem in ("f32", "f64") or (elem == "f16" and BITS[type] <= 32):
        return e.ins(f"{llvm} {type} {a[0]} to {LLVM[elem]}")
    if BITS[type] <= 16:
        return convert(e, "f32", elem, e.ins(f"{llvm} {type} {a[0]} to float"))
    name = a[0]
    if BITS[type] == 64:
        name = _sticky(e, name, llvm == "sitofp")
    wide = e.ins(f"{llvm} {type} {name} to double")
    return convert(e, "f64", elem, wide)


def _sticky(e: Emitter, x: str, signed: bool) -> str:
    """An integer of 64 bits that f64 holds and that rounds to few bits as x does: from 2^40 on the low 16 bits give way
    to the one above them, which is set where there were any.
    """
    limit = 1 << 40
    low = e.ins(f"icmp ne i64 {e.ins(f'and i64 {x}, 65535')}, 0")
    upper = e.ins(f"or i64 {e.ins(f'and i64 {x}, -65536')}, {e.ins(f'select i1 {low}, i64 65536, i64 0')}")
    moved = e.ins(f"add i64 {x}, {limit}") if signed else x
    small = e.ins(f"icmp ult i64 {moved}, {2 * limit if signed else limit}")
    return e.ins(f"select i1 {small}, i64 {x}, i64 {upper}")


@scalars("arith.fptosi", "arith.fptoui")
def _to_integer(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Towards zero; out of range saturates, NaN is 0. PTX saturates too, but of NaN makes 0 in 32 bits only."""
    source, elem = op.operands[0].elem, op.results[0].elem
    signed, type = op.name.endswith("si"), LLVM[op.results[0].elem]
    wide = "f64" if source == "f64" else "f32"
    x = convert(e, source, wide, a[0])
    if elem == "i1":
        return e.ins(f"fcmp une {LLVM[wide]} {x}, 0.0")
    size = "i" if BITS[type] <= 32 else "ll"
    name = f"llvm.nvvm.{'d' if wide == 'f64' else 'f'}2{'' if signed else 'u'}{size}.rz"
    found = e.ins(e.call(name, "i64" if size == "ll" else "i32", [(LLVM[wide], x)]))
    if wide == "f64" or size == "ll":
        number = e.ins(f"fcmp ord {LLVM[wide]} {x}, 0.0")
        register = "i64" if size == "ll" else "i32"
        found = e.ins(f"select i1 {number}, {register} {found}, {register} 0")
    if BITS[type] >= 32:
        return found
    bits = BITS[type]
    if signed:
        found = e.ins(e.call("llvm.smax.i32", "i32", [("i32", found), ("i32", str(-(1 << bits - 1)))]))
        found = e.ins(e.call("llvm.smin.i32", "i32", [("i32", found), ("i32", str((1 << bits - 1) - 1))]))
    else:
        found = e.ins(e.call("llvm.umin.i32", "i32", [("i32", found), ("i32", str((1 << bits) - 1))]))
    return e.ins(f"trunc i32 {found} to {type}")
