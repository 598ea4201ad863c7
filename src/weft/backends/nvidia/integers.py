"""Integers, register by register: arithmetic, comparisons, and from one width to another.

Addition and multiplication of 32 and 64 bits keep constants apart (see `Sum`): addresses of one tile differ by
constants mostly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.backends.llvm.emit import INTEGER_INSTRUCTIONS
from weft.ir.lane import LaneOp

from .elementwise import MANGLED, SCALARS, elementwise, named_predicate, scalars
from .emitter import BITS, EMITTERS, LLVM, PURE, Emitter, Part, Register, Sum, emitter

__all__: list[str] = []


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
        # Rows a stride apart are not an addition apart: LLVM moves each row's product out of a loop, not a chain of
        # additions to what the loop changes (persistent products by descriptors take 12 % longer so).
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
        elif name == "arith.muli" and op.results[0].elem == "i8":
            count = op.results[0].count
            columns = [e.wide(v, count) for v in op.operands]
            e.env[op.results[0]] = [_byte_product(e, a, b) for a, b in zip(*columns, strict=True)]
        else:
            elementwise(e, op)

    EMITTERS[name] = emit


def _byte_product(e: Emitter, a: Register, b: Register) -> Register:
    """The lowest byte of a product of words, whose upper bytes do not matter.

    LLVM's product of bytes is one of 16 bits, for which ptxas extends the sign of both factors and cuts the result.
    """
    return Part(e.pure(f"mul i32 {e.lowest_byte(a)}, {e.lowest_byte(b)}"), 0, 4, "i8")


def _binary(name: str, llvm: str) -> None:
    SCALARS[name] = lambda e, op, a: e.pure(f"{llvm} {LLVM[op.results[0].elem]} {a[0]}, {a[1]}")


for _name, _llvm in INTEGER_INSTRUCTIONS.items():
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


def _intrinsic(name: str, llvm: str) -> None:
    def emit(e: Emitter, op: LaneOp, a: list[str]) -> str:
        type = LLVM[op.results[0].elem]
        return e.ins(e.call(f"llvm.{llvm}.{MANGLED[type]}", type, [(type, x) for x in a]))

    SCALARS[name] = emit


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


@scalars("arith.cmpi")
def _compare_integers(e: Emitter, op: LaneOp, a: list[str]) -> str:
    predicate = named_predicate(op.attrs["predicate"], INTEGER_PREDICATES)
    return e.pure(f"icmp {predicate} {LLVM[op.operands[0].elem]} {a[0]}, {a[1]}")


# -- casts ------------------------------------------------------------------------------------------------------------


@emitter("arith.extsi", "arith.extui")
def _extend(e: Emitter, op: LaneOp) -> None:
    """A sum that is known not to leave 31 bits stays a sum in 64 bits."""
    source, result = op.operands[0], op.results[0]
    found = e.env[source]
    if source.elem != "i32" or result.elem != "i64":
        elementwise(e, op)
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
