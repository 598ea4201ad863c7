"""The dialect of AMDGPU: approximate instructions and conversions."""

from __future__ import annotations

from collections.abc import Mapping

from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value

from ..gpu.dialect import Pair, Scalar
from ..gpu.emitter import CONVERGENT, LLVM, PURE, Emitter
from .lanes import Lanes

APPROXIMATE = {
    "exp2": "amdgcn.exp2",
    "log2": "amdgcn.log",
    "reciprocal": "amdgcn.rcp",
    "sqrt": "amdgcn.sqrt",
    "rsqrt": "amdgcn.rsq",
    "quotient": "amdgcn.fdiv.fast",
}
"""LLVM's intrinsics of instructions; all take denormals for 0, or give 0 for them, but sqrt and rsqrt."""
PLAIN = {"exp2 of denormals": "exp2", "sin": "sin", "cos": "cos"}
"""What LLVM writes a few instructions for."""
TICK = 10
"""Nanoseconds of a step of the clock of all multiprocessors, which has 100 MHz."""
LETTERS = {"half": "v", "bfloat": "v"}


class Arithmetic(Lanes):
    """Floats and integers."""

    adds_bf16 = False
    scalars: Mapping[str, Scalar[Emitter]] = {}

    def approximation(self, f: Function, name: str, operands: list[Value]) -> Value:
        """The instruction where it is that exactly; LLVM scales around it, or turns angles to parts of the circle."""
        type = operands[0].type
        if name in PLAIN:
            fast, f.fast = f.fast, "afn " + f.fast
            try:
                return f.intrinsic(PLAIN[name], type, operands)
            finally:
                f.fast = fast
        suffix = {"quotient": ""}.get(name)
        return f.intrinsic(APPROXIMATE[name], type, operands, **({} if suffix is None else {"suffix": suffix}))

    def hidden(self, name: str, a: str, b: str) -> str:
        """The plain instruction: what LLVM makes of it is right here."""
        return f"{name} i64 {a}, {b}"

    def pair_conversion(self, source: str, target: str) -> Pair[Emitter] | None:
        """None."""
        return None

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
        """A move that LLVM does not see into."""
        return e.asm("v_mov_b32 $0, 0", "=v", ["i32"], ())[0]

    def keep(self, e: Emitter, registers: list[tuple[str, str]]) -> None:
        """No instruction, but LLVM takes it for one that reads them."""
        e.asm("", ",".join("v" for _ in registers), (), registers)
