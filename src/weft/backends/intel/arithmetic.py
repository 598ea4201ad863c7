"""The dialect of SPIR-V: functions and conversions of OpenCL's."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Value
from weft.ir.lane import LaneOp

from ..gpu.dialect import Pair, Scalar
from ..gpu.elementwise import shared
from ..gpu.emitter import LLVM, Emitter, scalar
from .lanes import Lanes

INTRINSICS = {"exp2": "exp2", "log2": "log2", "sqrt": "sqrt", "sin": "sin", "cos": "cos"}


def _upper_half(e: Emitter, op: LaneOp, operands: list[str]) -> str:
    """The upper half of a product. That of 64 bits is a sum of products of halves: SPIR-V has no 128 bits."""
    if e.llvm[op.results[0].elem] != "i64":
        return shared(e, op)(e, op, operands)
    low = [e.pure(f"and i64 {x}, {(1 << 32) - 1}") for x in operands]
    high = [e.pure(f"lshr i64 {x}, 32") for x in operands]
    crossed = [e.pure(f"mul i64 {low[i]}, {high[1 - i]}") for i in (0, 1)]
    carried = e.pure(f"lshr i64 {e.pure(f'mul i64 {low[0]}, {low[1]}')}, 32")
    total = e.pure(f"mul i64 {high[0]}, {high[1]}")
    for part in crossed:
        carried = e.pure(f"add i64 {carried}, {e.pure(f'and i64 {part}, {(1 << 32) - 1}')}")
        total = e.pure(f"add i64 {total}, {e.pure(f'lshr i64 {part}, 32')}")
    total = e.pure(f"add i64 {total}, {e.pure(f'lshr i64 {carried}, 32')}")
    if op.name == "arith.mulhsi":
        for x, y in (operands, operands[::-1]):
            below = e.pure(f"ashr i64 {x}, 63")
            total = e.pure(f"sub i64 {total}, {e.pure(f'and i64 {below}, {y}')}")
    return total


def _of_opencl(e: Emitter, op: LaneOp, operands: list[str]) -> str:
    """OpenCL's sine or cosine of f32, off by 4 units in the last place at most: that of all targets computes in f64."""
    type = e.llvm[op.results[0].elem]
    if type != "float":
        return shared(e, op)(e, op, operands)
    return e.f.intrinsic(op.name.removeprefix("math."), scalar(type), [Value(scalar(type), operands[0])]).name


OF_OPENCL: Mapping[str, Scalar[Emitter]] = dict.fromkeys(("math.sin", "math.cos"), _of_opencl)


class Arithmetic(Lanes):
    """Floats and integers."""

    bf16, adds_bf16 = "i16", True
    converts_slowly = False
    scalars: Mapping[str, Scalar[Emitter]] = dict.fromkeys(("arith.mulhui", "arith.mulhsi"), _upper_half)

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
