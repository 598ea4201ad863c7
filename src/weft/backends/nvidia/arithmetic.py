"""The dialect of PTX: approximate instructions, conversions, and instructions that LLVM does not see into."""

from __future__ import annotations

from collections.abc import Mapping

from weft.backends.llvm.elementwise import meaning_of
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value
from weft.ir import lane
from weft.ir.lane import LaneOp

from ..gpu.conversions import convert
from ..gpu.dialect import Pair, Scalar
from ..gpu.emitter import CONVERGENT, LLVM, PURE, Emitter, Register
from ..gpu.floats import quotient
from .version import Version

APPROXIMATE = {
    "exp2": "ex2.approx.ftz.f",
    "log2": "lg2.approx.ftz.f",
    "reciprocal": "rcp.approx.ftz.f",
    "sqrt": "sqrt.approx.ftz.f",
    "rsqrt": "rsqrt.approx.ftz.f",
    "sin": "sin.approx.ftz.f",
    "cos": "cos.approx.ftz.f",
    "quotient": "div.full",
}
"""LLVM's intrinsics; errors are those that the PTX ISA states."""
SCALED = {"tiny": ("olt", 2.0**-126, 2.0**24), "huge": ("ogt", 2.0**126, 0.25)}
"""Which divisors are scaled before `rcp.approx.ftz`, which takes denormal numbers for 0 and gives none, and by what."""
HIDDEN = {"add": "add.s64", "shl": "shl.b64", "sdiv": "div.s64", "udiv": "div.u64"}
SHORT = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
WIDE = ("f32", "f16", "bf16")
RZ = {
    ("f32", "f16"): ("cvt.rz.f16.f32", "=h,f", "i16"),
    ("f32", "bf16"): ("cvt.rz.bf16.f32", "=h,f", "i16"),
    ("f64", "f32"): ("cvt.rz.f32.f64", "=f,d", "float"),
    ("f64", "f16"): ("cvt.rz.f16.f64", "=h,d", "i16"),
}
SHIFTS = {"arith.shli": "shl.b64", "arith.shrui": "shr.u64", "arith.shrsi": "shr.s64"}
_shift = meaning_of("arith.shli")


def _shifted(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """LLVM would drop the upper half of an amount of 64 bits: PTX takes 32 bits of it, and shifts everything out."""
    assert _shift is not None
    type = LLVM[op.results[0].elem]
    if type != "i64" or (a[1].isdigit() and int(a[1]) < 64):
        return _shift(e.f, e.asked(op), [e.of_type(type, x) for x in a]).name
    inside = e.early("icmp ult i64", a[1], "64")
    amount = e.pure(f"select i1 {inside}, i32 {e.pure(f'trunc i64 {a[1]} to i32')}, i32 64")
    arguments = [("i64", a[0]), ("i32", amount)]
    return e.asm(f"{SHIFTS[op.name]} $0, $1, $2;", "=l,l,r", ["i64"], arguments, PURE, effects=False)[0]


def _quotient(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """What ptxas makes of `div.full`, without the scaling that the divisor is known not to need: the same bits.

    Both numbers are multiplied by one scale, which is one register for all quotients by one number. Where nothing is
    said of `scaled`, the divisor is a constant, and ptxas knows what to multiply by.
    """
    if "scaled" not in op.attrs:
        return quotient(e, op, a)
    f, (x, y) = e.f, [e.typed("f32", name) for name in a]
    size, scale = f.intrinsic("fabs", y.type, [y]), f.const(y.type, 1.0)
    for what in op.attrs["scaled"]:
        relation, limit, factor = SCALED[what]
        scale = f.select(f.fcmp(relation, size, f.const(y.type, limit)), f.const(y.type, factor), scale)
    if op.attrs["scaled"]:
        x, y = f.fmul(x, scale), f.fmul(y, scale)
    return f.fmul(x, f.intrinsic(f"nvvm.{APPROXIMATE['reciprocal']}", y.type, [y], suffix="")).name


class Arithmetic(Version):
    """Floats and integers."""

    bf16 = "bfloat"
    converts_slowly = True
    scalars: Mapping[str, Scalar[Emitter]] = dict.fromkeys(SHIFTS, _shifted) | {"arith.divf": _quotient}

    def approximation(self, f: Function, name: str, operands: list[Value]) -> Value:
        """By the intrinsic of the instruction."""
        return f.intrinsic(f"nvvm.{APPROXIMATE[name]}", operands[0].type, operands, suffix="")

    def hidden(self, name: str, a: str, b: str) -> str:
        """As inline assembly; the number of places of a shift is a part of its text.

        What is only said to read memory is dropped if nobody uses it, and is not moved to where it is used: addresses
        that are computed in front of a loop, for what is behind it, leave more to overlap (6 % of a kernel).
        """
        attributes = PURE if name in ("sdiv", "udiv") else "nounwind willreturn memory(read)"
        if name == "shl":
            return f'call i64 asm "shl.b64 $0, $1, {b};", "=l,l"(i64 {a}) {attributes}'
        kind = "l" if b[0] == "%" else "n"
        return f'call i64 asm "{HIDDEN[name]} $0, $1, $2;", "=l,l,{kind}"(i64 {a}, i64 {b}) {attributes}'

    def pair_conversion(self, source: str, target: str) -> Pair[Emitter] | None:
        """`cvt` of two numbers, from 8.9 on."""
        if self.capability < 89:
            return None
        if target in SHORT and source in WIDE:
            return lambda e, pair: self._to_small(e, pair, source, target)
        if source in SHORT and target in WIDE:
            return lambda e, pair: self._from_small(e, pair, source, target)
        return None

    def _to_small(self, e: Emitter, pair: list[Register], source: str, target: str) -> list[Register]:
        self.needs("8.1")
        if source == "f16":
            text, word = f"cvt.rn.satfinite.{SHORT[target]}x2.f16x2 $0, $1;", e.word(pair, "half")
            small = e.asm(text, "=h,r", ["i16"], [("i32", word)], PURE, effects=False)[0]
        else:
            low, high = (convert(e, source, "f32", e.name(r)) for r in pair)
            text = f"cvt.rn.satfinite.{SHORT[target]}x2.f32 $0, $2, $1;"
            small = e.asm(text, "=h,f,f", ["i16"], [("float", low), ("float", high)], PURE, effects=False)[0]
        return e.parts(small, "i8", 2)

    def _from_small(self, e: Emitter, pair: list[Register], source: str, target: str) -> list[Register]:
        self.needs("8.1")
        word = e.word(pair, "i8")
        text = f"cvt.rn.f16x2.{SHORT[source]}x2 $0, $1;"
        halves = e.parts(e.asm(text, "=r,h", ["i32"], [("i16", word)], PURE, effects=False)[0], "half", 2)
        return halves if target == "f16" else [convert(e, "f16", target, e.name(h)) for h in halves]

    def toward_zero(self, e: Emitter, source: str, target: str, name: str) -> str | None:
        """`cvt.rz`."""
        if (source, target) not in RZ:
            return None
        text, constraints, type = RZ[source, target]
        rounded = e.asm(f"{text} $0, $1;", constraints, [type], [(LLVM[source], name)], PURE, effects=False)[0]
        return rounded if type == LLVM[target] else e.ins(f"bitcast {type} {rounded} to {LLVM[target]}")

    def to_integer(self, e: Emitter, name: str, source: str, bits: int, *, signed: bool) -> str:
        """PTX saturates, but of NaN makes 0 in 32 bits only."""
        float, integer = LLVM[source], f"i{bits}"
        kind = f"{'f' if source == 'f32' else 'd'}2{'' if signed else 'u'}{'i' if bits == 32 else 'll'}"
        converted = e.ins(e.call(f"llvm.nvvm.{kind}.rz", integer, [(float, name)]))
        if source == "f64" or bits == 64:
            number = e.ins(f"fcmp ord {float} {name}, 0.0")
            converted = e.ins(f"select i1 {number}, {integer} {converted}, {integer} 0")
        return converted

    def clock(self, e: Emitter) -> str:
        """The one of all multiprocessors."""
        return e.asm("mov.u64 $0, %globaltimer;", "=l", ["i64"], (), CONVERGENT)[0]

    def zero(self, e: Emitter) -> str:
        """The highest bit of the clock, which takes 150 years to set."""
        text = "{ .reg .b32 t; mov.u32 t, %clock_hi; shr.u32 $0, t, 31; }"
        return e.asm(text, "=r", ["i32"], ())[0]

    def together(self, value: lane.Value) -> int:
        """Each for itself: PTX has no vectors."""
        return 1

    def load_anew(self, e: Emitter) -> None:
        """No instruction, but LLVM takes it for one that may write anything."""
        e.asm("", "~{memory}", (), ())

    def keep(self, e: Emitter, registers: list[tuple[str, str]]) -> None:
        """No instruction, but LLVM takes it for one that reads them."""
        letters = {"float": "f", "half": "h", "bfloat": "h"}
        e.asm("", ",".join(letters[t] for t, _ in registers), (), registers)
