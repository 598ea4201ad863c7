"""Floats as other floats and as integers, integers as floats: in pairs where the processor has instructions for two."""

from __future__ import annotations

from weft.backends.llvm import casts
from weft.backends.llvm.elementwise import rounds_to_zero
from weft.ir.lane import LaneOp

from .dialect import Pair
from .elementwise import scalars
from .emitter import BITS, Emitter, Part, Register, emitter


@emitter("arith.extf", "arith.truncf")
def _float_cast(e: Emitter, op: LaneOp) -> None:
    """Pairs, where the processor has instructions for two at once."""
    source, result, down = op.operands[0], op.results[0], rounds_to_zero(op.attrs)
    registers = e.env[source]
    pair = None if down else _pair_conversion(e, source.elem, result.elem)
    if pair is not None and len(registers) % 2 == 0:
        e.env[result] = [r for i in range(0, len(registers), 2) for r in pair(e, registers[i : i + 2])]
        return
    converted: dict[str, str] = {}
    out: list[Register] = []
    for register in registers:
        if (source.elem, result.elem) == ("bf16", "f32") and isinstance(register, Part) and register.count == 2:
            out.append(_upper_half(e, register))
            continue
        name = e.name(register)
        if name not in converted:
            converted[name] = convert(e, source.elem, result.elem, name, down)
        out.append(converted[name])
    e.env[result] = out


def _upper_half(e: Emitter, half: Part) -> str:
    """The f32 whose upper half is a bf16 in a word: that is an instruction, and another to take the half out first."""
    bits = e.pure(f"and i32 {half.word}, {-1 << 16}" if half.index else f"shl i32 {half.word}, 16")
    return e.pure(f"bitcast i32 {bits} to float")


def _pair_conversion(e: Emitter, source: str, target: str) -> Pair[Emitter] | None:
    """How two elements at once are converted; None if they are not."""
    if source == "f32" and target in ("f16", "bf16") and e.llvm[target][0] != "i":
        return lambda e, pair: pair_to_half(e, pair, target)
    return e.dialect.pair_conversion(source, target)


def pair_to_half(e: Emitter, pair: list[Register], target: str) -> list[Register]:
    """Two of f32 as f16 or bf16, in a word."""
    low, high = (e.name(r) for r in pair)
    vector = e.pure(f"insertelement <2 x float> poison, float {low}, i32 0")
    vector = e.pure(f"insertelement <2 x float> {vector}, float {high}, i32 1")
    halves = e.pure(f"fptrunc <2 x float> {vector} to <2 x {e.llvm[target]}>")
    return e.parts(e.pure(f"bitcast <2 x {e.llvm[target]}> {halves} to i32"), e.llvm[target], 2)


def convert(e: Emitter, source: str, target: str, name: str, toward_zero: bool = False) -> str:
    """A float as another: to nearest even unless `toward_zero`."""
    if toward_zero and (source in ("f16", "bf16") or (source, target) == ("f64", "bf16")):
        name, source = convert(e, source, "f32", name, source == "f64"), "f32"
    if toward_zero and (rounded := e.dialect.toward_zero(e, source, target, name)) is not None:
        return rounded
    return casts.convert_float(e.f, e.typed(source, name), source, target, toward_zero).name


@scalars("arith.fptosi", "arith.fptoui")
def _to_integer(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """Towards zero; out of range saturates, NaN is 0."""
    source, elem = op.operands[0].elem, op.results[0].elem
    signed, type = op.name.endswith("si"), e.llvm[op.results[0].elem]
    wide = "f64" if source == "f64" else "f32"
    x = convert(e, source, wide, a[0])
    if elem == "i1":
        return e.ins(f"fcmp une {e.llvm[wide]} {x}, 0.0")
    number = e.dialect.to_integer(e, x, wide, max(32, BITS[type]), signed=signed)
    if BITS[type] >= 32:
        return number
    bits = BITS[type]
    if signed:
        number = e.ins(e.call("llvm.smax.i32", "i32", [("i32", number), ("i32", str(-(1 << bits - 1)))]))
        number = e.ins(e.call("llvm.smin.i32", "i32", [("i32", number), ("i32", str((1 << bits - 1) - 1))]))
    else:
        number = e.ins(e.call("llvm.umin.i32", "i32", [("i32", number), ("i32", str((1 << bits) - 1))]))
    return e.ins(f"trunc i32 {number} to {type}")
