"""The dialect of SPIR-V: functions and conversions of OpenCL's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value

from ..gpu.dialect import Pair, Scalar
from ..gpu.emitter import LLVM, Emitter
from .lanes import Lanes

INTRINSICS = {"exp2": "exp2", "exp2 of denormals": "exp2", "log2": "log2", "sqrt": "sqrt", "sin": "sin", "cos": "cos"}


class Arithmetic(Lanes):
    """Floats and integers."""

    bf16, adds_bf16 = "i16", True
    scalars: Mapping[str, Scalar[Emitter]] = {}

    def approximation(self, f: Function, name: str, operands: list[Value]) -> Value:
        """OpenCL's functions: exp2 and log2 are off by 3 units in the last place at most, quotients by 2.5."""
        type = operands[0].type
        if name in INTRINSICS:
            return f.intrinsic(INTRINSICS[name], type, operands)
        one = f"fdiv {type}"
        if name == "quotient":
            return f.emit(type, f"{one} {operands[0].name}, {operands[1].name}")
        x = f.intrinsic("sqrt", type, operands) if name == "rsqrt" else operands[0]
        return f.emit(type, f"{one} 1.0, {x.name}")

    def hidden(self, name: str, a: str, b: str) -> str:
        """The plain instruction."""
        return f"{name} i64 {a}, {b}"

    def pair_conversion(self, source: str, target: str) -> Pair[Emitter] | None:
        """None: floats of 8 bits are converted by arithmetic on integers."""
        return None

    def toward_zero(self, e: Emitter, source: str, target: str, name: str) -> str | None:
        """By arithmetic on integers."""
        return None

    def to_integer(self, e: Emitter, name: str, source: str, bits: int, *, signed: bool) -> str:
        """What is out of range is chosen afterwards: such a conversion has no meaning in SPIR-V, and 0 is converted."""
        type, whole = LLVM[source], f"i{bits}"
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, -1)
        least, most = (_power(x) for x in ((-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)))
        above, below = e.pure(f"fcmp oge {type} {name}, {most}"), e.pure(f"fcmp olt {type} {name}, {least}")
        inside = e.pure(f"fcmp ord {type} {name}, 0.0")
        for outside in (above, below):
            inside = e.pure(f"select i1 {outside}, i1 false, i1 {inside}")
        plain = e.pure(f"select i1 {inside}, {type} {name}, {type} 0.0")
        number = e.pure(f"fpto{'s' if signed else 'u'}i {type} {plain} to {whole}")
        number = e.pure(f"select i1 {above}, {whole} {high}, {whole} {number}")
        return e.pure(f"select i1 {below}, {whole} {low}, {whole} {number}")

    def clock(self, e: Emitter) -> str:
        """The device's, by SPV_KHR_shader_clock: nanoseconds on the host's processor, steps of its own elsewhere."""
        return e.ins(e.call("_Z17clock_read_devicev", "i64", ()))

    def zero(self, e: Emitter) -> str:
        """A volatile load from the thread's own memory: nobody sees what it gives."""
        place = f"%zero{len(e.f.allocas)}"
        e.f.allocas.append(f"  {place} = alloca i32, align 4")
        e.do(f"store volatile i32 0, ptr {place}, align 4")
        return e.ins(f"load volatile i32, ptr {place}, align 4")

    def load_anew(self, e: Emitter) -> None:
        """A fence of the thread alone."""
        e.do('fence syncscope("singlethread") acq_rel')

    def keep(self, e: Emitter, registers: list[tuple[str, str]]) -> None:
        """Nothing: there is no assembler behind this whose choice of registers could be told."""


def _power(value: int) -> str:
    """A power of two, or its negative, as LLVM spells it."""
    return f"0x{int(np.float64(value).view(np.uint64)):016X}"
