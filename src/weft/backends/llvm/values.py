"""Types, registers and constants of LLVM IR, as they are written.

A `Value` is a type and the operand's spelling, so constants and registers are one thing:

    >>> print(vec("float", 16), const(I32, 42), const(vec("i32", 4), 7))
    <16 x float> i32 42 <4 x i32> splat (i32 7)
    >>> print(const(FLOAT, 0.1), mangle(vec("float", 16)))
    float 0x3FB99999A0000000 v16f32
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import cache


class Type:
    """An LLVM first-class type: an element spelled as in LLVM, and a number of lanes (0 for a scalar)."""

    __slots__ = ("elem", "lanes", "text")

    def __init__(self, elem: str, lanes: int = 0) -> None:
        self.elem, self.lanes = elem, lanes
        self.text = f"<{lanes} x {elem}>" if lanes else elem

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def scalar(self) -> Type:
        """The element type alone."""
        return vec(self.elem, 0)

    def with_lanes(self, lanes: int) -> Type:
        """The same element in another number of lanes (0: scalar)."""
        return vec(self.elem, lanes)

    def with_elem(self, elem: str) -> Type:
        """Another element in the same number of lanes."""
        return vec(elem, self.lanes)

    @property
    def is_float(self) -> bool:
        """Whether the element is a float."""
        return self.elem in FLOAT_BITS

    @property
    def bits(self) -> int:
        """Width of one element in bits (pointers: 64)."""
        if self.elem in FLOAT_BITS:
            return FLOAT_BITS[self.elem]
        return 64 if self.elem == "ptr" else int(self.elem[1:])


FLOAT_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


@cache
def vec(elem: str, lanes: int) -> Type:
    """The interned type of `lanes` elements (0: a scalar)."""
    return Type(elem, lanes)


VOID = vec("void", 0)
PTR = vec("ptr", 0)
I1, I8, I16, I32, I64 = (vec(f"i{n}", 0) for n in (1, 8, 16, 32, 64))
HALF, BFLOAT, FLOAT, DOUBLE = (vec(n, 0) for n in ("half", "bfloat", "float", "double"))


class Value:
    """An operand: its type and how it is spelled (`%12`, `42`, `<i32 0, i32 1>`)."""

    __slots__ = ("name", "type")

    def __init__(self, type: Type, name: str) -> None:
        self.type, self.name = type, name

    def __str__(self) -> str:
        return f"{self.type.text} {self.name}"

    __repr__ = __str__


def float_literal(elem: str, value: float) -> str:
    """`value` rounded to nearest in `elem`, in LLVM's hexadecimal spelling, which is exact for every value and NaN."""
    if elem == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if elem == "half":
        return f"0xH{_to_half_bits(value):04X}"
    try:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        single = float("inf") if value > 0 else float("-inf")
    if elem == "bfloat":
        return f"0xR{_to_bfloat_bits(single):04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"


def _to_half_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def _to_bfloat_bits(value: float) -> int:
    bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
    if value != value:
        return (bits >> 16) | 0x40
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF


def literal(type: Type, value: int | float) -> str:
    """The spelling of one constant element of `type`."""
    if type.is_float:
        return float_literal(type.elem, float(value))
    if type.elem == "i1":
        return "true" if value else "false"
    if type.elem == "ptr" and not value:
        return "null"
    return str(int(value))


def const(type: Type, value: int | float) -> Value:
    """A constant; on a vector type, the same in every lane."""
    text = literal(type, value)
    if type.lanes:
        if value == 0 and math.copysign(1.0, value) > 0:
            return Value(type, "zeroinitializer")
        return Value(type, f"splat ({type.elem} {text})")
    return Value(type, text)


def const_lanes(type: Type, values: Sequence[int | float]) -> Value:
    """A vector constant given lane by lane."""
    return Value(type, "<" + ", ".join(f"{type.elem} {literal(type, v)}" for v in values) + ">")


def mangle(type: Type) -> str:
    """The suffix LLVM gives overloaded intrinsics: `v16f32`, `i64`, `p0`."""
    elem = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0", "void": ""}.get(
        type.elem, type.elem
    )
    return f"v{type.lanes}{elem}" if type.lanes else elem
