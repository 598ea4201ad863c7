"""Integers, where more is known of them than LLVM is told, or less done than it would do.

Addition and multiplication of 32 and 64 bits keep constants apart (see `Sum`): addresses of one tile differ by
constants mostly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.ir.lane import LaneOp

from .elementwise import elementwise
from .emitter import EMITTERS, Emitter, Part, Register, Sum, emitter


def _split(register: Register) -> tuple[str, int]:
    if isinstance(register, Sum):
        return register.base, register.offset
    return (register, 0) if isinstance(register, str) else ("", 0)


def _lazy(e: Emitter, op: LaneOp, combine: Callable[[Emitter, str, Register, Register], Register]) -> None:
    """Apply to registers that may be sums; the operands' registers are paired as for any operation."""
    result = op.results[0]
    left, right = (e.wide(v, result.count) for v in op.operands)
    computed: dict[tuple[Any, ...], Register] = {}
    out: list[Register] = []
    for a, b in zip(left, right, strict=True):
        key = (*_split(a), *_split(b))
        register = computed.get(key)
        if register is None:
            register = computed[key] = combine(e, result.elem, a, b)
        out.append(register)
    e.env[result] = out


def _added(e: Emitter, type: str, a: Register, b: Register) -> Register:
    x, m = _split(a)
    y, n = _split(b)
    if not x or not y:
        base, largest = x or y, e.largest.get(x or y)
    else:
        base = e.early(f"add {type}", x, y)
        if type == "i64":
            e.note_step(x, y, base)
        largest = None
        if x in e.largest and y in e.largest and e.largest[x] + e.largest[y] < 1 << 31:
            largest = e.largest[x] + e.largest[y]
    if largest is not None:
        e.largest[base] = largest
    return Sum(base, m + n, type)


def _subtracted(e: Emitter, type: str, a: Register, b: Register) -> Register:
    x, m = _split(a)
    y, n = _split(b)
    base = x
    if y:
        base = "" if x == y else e.early(f"sub {type}", x or "0", y)
    return Sum(base, m - n, type)


def _multiplied(e: Emitter, type: str, a: Register, b: Register) -> Register:
    x, m = _split(a)
    y, n = _split(b)
    if x and y:
        # Rows a stride apart are not an addition apart: LLVM moves each row's product out of a loop, not a chain of
        # additions to what the loop changes (persistent products by descriptors take 12 % longer so).
        return e.early(f"mul {type}", e.name(a), e.name(b))
    base, factor = (x, n) if x else (y, m)
    if not base or not factor:
        return Sum("", m * n, type)
    largest = e.largest.get(base)
    if factor != 1:
        product = e.early(f"mul {type}", base, str(factor))
        if type == "i64" and factor & factor - 1 == 0 and factor > 1:
            e.multiples.setdefault(product, (base, factor.bit_length() - 1, e.place))
        base = product
        if largest is not None and factor > 0 and largest * factor < 1 << 31:
            e.largest[base] = largest * factor
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

    LLVM's product of bytes is one of 16 bits, for which the assembler extends the sign of both factors and cuts the
    result.
    """
    return Part(e.early("mul i32", e.lowest_byte(a), e.lowest_byte(b)), 0, 4, "i8")


_wide_arithmetic("arith.addi", _added)
_wide_arithmetic("arith.subi", _subtracted)
_wide_arithmetic("arith.muli", _multiplied)


@emitter("arith.mului_extended", "arith.mulsi_extended")
def _multiply_extended(e: Emitter, op: LaneOp) -> None:
    for result, name in zip(op.results, ("arith.muli", f"arith.mulh{op.name[9:11]}"), strict=True):
        elementwise(e, LaneOp(name, op.operands, (result,), {}, (), op.span))


@emitter("arith.andi")
def _and(e: Emitter, op: LaneOp) -> None:
    """With a constant that is not negative, the result is no more than it."""
    elementwise(e, op)
    result = op.results[0]
    columns = [e.wide(v, result.count) for v in op.operands] if result.elem == "i32" else []
    for register, *row in zip(e.env[result], *columns, strict=True) if columns else ():
        known = [x.offset for x in row if isinstance(x, Sum) and not x.base and x.offset >= 0]
        if known and isinstance(register, str):
            e.largest[register] = min(known)


# -- casts ------------------------------------------------------------------------------------------------------------


@emitter("arith.extsi", "arith.extui")
def _extend(e: Emitter, op: LaneOp) -> None:
    """A sum that is known not to leave 31 bits stays a sum in 64 bits."""
    source, result = op.operands[0], op.results[0]
    registers = e.env[source]
    if source.elem != "i32" or result.elem != "i64":
        elementwise(e, op)
        return
    out: list[Register] = []
    for register in registers:
        base, offset = _split(register)
        largest = e.largest.get(base, 0 if not base else None)
        if isinstance(register, Sum) and not base and op.name == "arith.extsi":
            out.append(Sum("", offset, "i64"))
        elif isinstance(register, (Sum, str)) and largest is not None and offset >= 0 and largest + offset < 1 << 31:
            wide = e.early("zext i32", base, to="i64") if base else ""
            out.append(Sum(wide, offset, "i64"))
        else:
            extension = "sext" if op.name == "arith.extsi" else "zext"
            out.append(e.early(f"{extension} i32", e.name(register), to="i64"))
    e.env[result] = out
