"""The dialect of AMDGPU: approximate instructions and conversions."""

from __future__ import annotations

from collections.abc import Mapping

from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value, literal, vec
from weft.ops import ELEMENTS

from ..gpu.conversions import convert
from ..gpu.dialect import Pair, Scalar
from ..gpu.emitter import CONVERGENT, LLVM, PURE, Emitter, Part, Register
from .lanes import Lanes
from .processor import GFX12

APPROXIMATE = {
    "exp2": "amdgcn.exp2",
    "log2": "amdgcn.log",
    "reciprocal": "amdgcn.rcp",
    "sqrt": "amdgcn.sqrt",
    "rsqrt": "amdgcn.rsq",
    "quotient": "amdgcn.fdiv.fast",
}
"""LLVM's intrinsics of instructions; all take denormals for 0, or give 0 for them, but sqrt and rsqrt."""
PLAIN = {"sin": "sin", "cos": "cos"}
"""What LLVM writes a few instructions for."""
TICK = 10
"""Nanoseconds of a step of the clock of all multiprocessors, which has 100 MHz."""
WIDE = ("f32", "f16", "bf16")
NAN = "0x7FF8000000000000"


class Arithmetic(Lanes):
    """Floats and integers."""

    bf16, adds_bf16 = "bfloat", True  # by way of f32, two at a time or not
    converts_slowly = False
    scalars: Mapping[str, Scalar[Emitter]] = {}

    def approximation(self, f: Function, name: str, operands: list[Value]) -> Value:
        """The instruction where it is that exactly; LLVM scales around it, or turns angles to parts of the circle."""
        if name in PLAIN:
            return f.intrinsic(PLAIN[name], operands[0].type, operands)
        return f.intrinsic(APPROXIMATE[name], operands[0].type, operands, "" if name == "quotient" else None)

    def hidden(self, name: str, a: str, b: str) -> str:
        """The plain instruction: what LLVM makes of it is right here."""
        return f"{name} i64 {a}, {b}"

    def pair_conversion(self, source: str, target: str) -> Pair[Emitter] | None:
        """`v_cvt_pk_fp8_f32` and its like, for the formats that the processor has; e4m3 by f16 elsewhere."""
        small = self.small_floats()
        if target in small and source in WIDE:
            return lambda e, pair: _to_small(e, pair, source, target, small[target])
        if source in small and target in WIDE:
            return lambda e, pair: _from_small(e, pair, target, small[source])
        if source == "f8E4M3FN" and target in WIDE:
            return lambda e, pair: _from_e4m3(e, pair, target)
        return None

    def small_floats(self) -> Mapping[str, str]:
        """The floats of 8 bits that instructions convert, and what those call them."""
        if self.number == 0x942:
            return {"f8E4M3FNUZ": "fp8", "f8E5M2FNUZ": "bf8"}
        if self.number == 0x950 or self.number >= GFX12:
            return {"f8E4M3FN": "fp8", "f8E5M2": "bf8"}
        return {}

    def toward_zero(self, e: Emitter, source: str, target: str, name: str) -> str | None:
        """`v_cvt_pkrtz_f16_f32`, of which one half is taken."""
        if (source, target) != ("f32", "f16"):
            return None
        pair = e.pure(e.call("llvm.amdgcn.cvt.pkrtz", "<2 x half>", [("float", name), ("float", "0.0")], PURE))
        return e.pure(f"extractelement <2 x half> {pair}, i32 0")

    def to_integer(self, e: Emitter, name: str, source: str, bits: int, *, signed: bool) -> str:
        """`v_cvt_i32_f32` and its like do just that."""
        called = f"llvm.fpto{'s' if signed else 'u'}i.sat.i{bits}.{source}"
        return e.ins(e.call(called, f"i{bits}", [(LLVM[source], name)]))

    def clock(self, e: Emitter) -> str:
        """The one of all multiprocessors."""
        ticks = e.ins(e.call("llvm.readsteadycounter", "i64", (), CONVERGENT))
        return e.ins(f"mul i64 {ticks}, {TICK}")

    def zero(self, e: Emitter) -> str:
        """No instruction but a move; LLVM does not see what comes out of it."""
        return e.asm("", "=v,0", ["i32"], [("i32", "0")])[0]

    def load_anew(self, e: Emitter) -> None:
        """No instruction, but LLVM takes it for one that may write anything."""
        e.asm("", "~{memory}", (), ())

    def keep(self, e: Emitter, registers: list[tuple[str, str]]) -> None:
        """No instruction, but LLVM takes it for one that reads them."""
        e.asm("", ",".join("v" for _ in registers), (), registers)


def _to_small(e: Emitter, pair: list[Register], source: str, target: str, kind: str) -> list[Register]:
    """Saturated before: the instruction makes NaN of what is too large, and the median of NaN and numbers is none."""
    largest = ELEMENTS[target].largest
    bounds = [("float", literal(vec("float", 0), x)) for x in (-largest, largest)]
    inside = []
    for register in pair:
        x = convert(e, source, "f32", e.name(register))
        median = e.pure(e.call("llvm.amdgcn.fmed3.f32", "float", [("float", x), *bounds], PURE))
        number = e.pure(f"fcmp ord float {x}, 0.0")
        inside.append(("float", e.pure(f"select i1 {number}, float {median}, float {NAN}")))
    arguments = [*inside, ("i32", "0"), ("i1", "false")]
    word = e.pure(e.call(f"llvm.amdgcn.cvt.pk.{kind}.f32", "i32", arguments, PURE))
    return e.parts(e.early("trunc i32", word, to="i16"), "i8", 2)


def _from_small(e: Emitter, pair: list[Register], target: str, kind: str) -> list[Register]:
    """By an instruction that takes the lower or the upper half of a word."""
    word, is_upper = _in_word(e, pair)
    upper = str(is_upper).lower()
    floats = e.pure(e.call(f"llvm.amdgcn.cvt.pk.f32.{kind}", "<2 x float>", [("i32", word), ("i1", upper)], PURE))
    names = [e.pure(f"extractelement <2 x float> {floats}, i32 {i}") for i in (0, 1)]
    return [n if target == "f32" else convert(e, "f32", target, n) for n in names]


def _in_word(e: Emitter, pair: list[Register]) -> tuple[str, bool]:
    """A word with two bytes as they lie there, and whether they are its upper ones."""
    first, second = pair
    if isinstance(first, Part) and isinstance(second, Part) and first.word == second.word and first.count == 4 and (
        first.index in (0, 2) and second.index == first.index + 1
    ):  # fmt: skip
        return first.word, bool(first.index)
    return e.early("zext i16", e.word(pair, "i8"), to="i32"), False


def _from_e4m3(e: Emitter, pair: list[Register], target: str) -> list[Register]:
    """Two e4m3 of a word in seven instructions: they are f16 whose exponents count from another number.

        s eeee mmm  ->  s 0eeee mmm 0000000     2^-8 of it, denormals too, so it is multiplied by 256

    Only NaN would come out as a number, 480. It is the only one that overflows f16 when multiplied by 140 (448 x 140 is
    62,720); infinity times 0 is NaN, and 0 of all others adds nothing.
    """
    word, is_upper = _in_word(e, pair)
    spread = e.pure(
        e.call("llvm.amdgcn.perm", "i32", [("i32", word), ("i32", word), ("i32", str(SPREAD[is_upper]))], PURE)
    )
    numbers = e.early("and i32", e.early("lshr i32", spread, "1"), str(0x3F803F80))
    bits = e.early("or i32", e.early("and i32", spread, str(0x80008000 - (1 << 32))), numbers)
    small = e.pure(f"bitcast i32 {bits} to <2 x half>")
    value = e.pure(f"fmul <2 x half> {small}, {_both(256)}")
    large = e.pure(f"fmul <2 x half> {small}, {_both(256 * 140)}")
    arguments = [("<2 x half>", x) for x in (large, _both(0), value)]
    checked = e.pure(e.call("llvm.fma.v2f16", "<2 x half>", arguments))
    names = [e.pure(f"extractelement <2 x half> {checked}, i32 {i}") for i in (0, 1)]
    return [n if target == "f16" else convert(e, "f16", target, n) for n in names]


SPREAD = {False: 0x010C000C, True: 0x030C020C}
"""For `v_perm_b32`: the lower or the upper two bytes of a word, each above a byte of zeros."""


def _both(number: int) -> str:
    """A constant of two f16."""
    return f"<half {literal(vec('half', 0), number)}, half {literal(vec('half', 0), number)}>"
