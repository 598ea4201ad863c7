"""Floats as other floats and as integers, integers as floats: in pairs where the processor has instructions for two."""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.llvm import casts
from weft.backends.llvm.elementwise import rounds_to_zero
from weft.ir.lane import LaneOp

from .elementwise import scalars
from .emitter import BITS, LLVM, PURE, Emitter, Register, emitter

__all__ = ["convert"]


@emitter("arith.extf", "arith.truncf")
def _float_cast(e: Emitter, op: LaneOp) -> None:
    """Pairs, where the processor has instructions for two at once."""
    source, result, down = op.operands[0], op.results[0], rounds_to_zero(op.attrs)
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


RZ = {
    ("f32", "f16"): ("cvt.rz.f16.f32", "=h,f", "i16"),
    ("f32", "bf16"): ("cvt.rz.bf16.f32", "=h,f", "i16"),
    ("f64", "f32"): ("cvt.rz.f32.f64", "=f,d", "float"),
    ("f64", "f16"): ("cvt.rz.f16.f64", "=h,d", "i16"),
}


def convert(e: Emitter, source: str, target: str, name: str, toward_zero: bool = False) -> str:
    """A float as another: to nearest even unless `toward_zero`."""
    if toward_zero and (source in ("f16", "bf16") or (source, target) == ("f64", "bf16")):
        name, source = convert(e, source, "f32", name, source == "f64"), "f32"
    if toward_zero and (source, target) in RZ:
        text, constraints, type = RZ[source, target]
        found = e.asm(f"{text} $0, $1;", constraints, [type], [(LLVM[source], name)], PURE, effects=False)[0]
        return found if type == LLVM[target] else e.ins(f"bitcast {type} {found} to {LLVM[target]}")
    return casts.convert_float(e.f, e.typed(source, name), source, target, toward_zero).name


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
