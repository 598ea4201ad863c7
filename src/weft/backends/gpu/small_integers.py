"""Small integers as floats without an instruction that converts, where that one is slow.

A multiprocessor of NVIDIA converts 16 integers to floats in a clock, and does 64 operations on bits or 128 on floats
in the same time. The bits of a small integer are those of the fraction of a large float: with b of 8 bits,

    0x4B000000 | b    is the f32    2^23 + b
    0x6400 | b        is the f16    2^10 + b

so an operation on bits and an exact subtraction give b. A permutation of bytes takes a byte out of a word and puts the
exponent beside it in one instruction; of halves it makes two at a time:

    permute(%word, 0x64646464, bytes 0, 4, 1, 4)    <1024 + b0, 1024 + b1>    - <1024, 1024>

A signed integer is first moved up by half of its range, which is a bit to flip, for the four bytes of a word at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.backends.llvm import casts
from weft.ir.lane import LaneOp

from .conversions import pair_to_half
from .elementwise import elementwise
from .emitter import Emitter, Part, Register, Sum, emitter


@dataclass(frozen=True)
class _Scale:
    """The floats that are an integer apart."""

    exponent: int
    """The bits of the first of them."""
    first: int
    """What that is; integers below it are in the fraction of what follows."""


F32, F16, BF16 = _Scale(0x4B000000, 1 << 23), _Scale(0x6400, 1 << 10), _Scale(0x4300, 1 << 7)


@emitter("arith.sitofp", "arith.uitofp")
def _to_float(e: Emitter, op: LaneOp) -> None:
    source, result = op.operands[0], op.results[0]
    registers = e.env[source]
    values = 256 if op.name == "arith.sitofp" and source.elem == "i8" else 0
    below = _below(e, source.elem, registers)
    scale = {"f32": F32, "f16": F16, "bf16": F32}.get(result.elem)
    if not e.dialect.converts_slowly or scale is None or below > scale.first:
        return elementwise(e, op)
    if result.elem == "bf16" and below <= BF16.first and e.dialect.adds_bf16:
        scale = BF16
    if scale is not F32 and len(registers) % 2 == 0:
        pairs = [registers[i : i + 2] for i in range(0, len(registers), 2)]
        e.env[result] = [x for pair in pairs for x in _pair(e, source.elem, pair, result.elem, scale, values)]
        return None
    wide: list[Register] = [_f32(e, source.elem, r, values) for r in registers]
    if result.elem == "f32":
        e.env[result] = wide
    elif len(wide) % 2 == 0:
        e.env[result] = [x for i in range(0, len(wide), 2) for x in pair_to_half(e, wide[i : i + 2], result.elem)]
    else:
        names = map(e.name, wide)
        e.env[result] = [casts.convert_float(e.f, e.typed("f32", n), "f32", result.elem).name for n in names]
    return None


def _below(e: Emitter, elem: str, registers: Sequence[Register]) -> int:
    """What integers are less than, taken as unsigned; of 16 bits, two in a word, converting by bits takes as long."""
    if elem == "i32":
        return 1 + max(_largest(e, r) for r in registers)
    return 256 if elem == "i8" else 1 << 64


def _largest(e: Emitter, register: Register) -> int:
    """The largest that a register of 32 bits is known to be, if it is not negative."""
    base, offset = (register.base, register.offset) if isinstance(register, Sum) else (e.name(register), 0)
    known = e.largest.get(base, (1 << 32) - 1) if base else 0
    return known + offset if offset >= 0 else (1 << 32) - 1


def _f32(e: Emitter, source: str, register: Register, values: int) -> str:
    """One as f32; `values` is how many a signed one may have, 0 for one that is not negative."""
    if isinstance(register, Part) and register.type == "i8" and register.count == 4:
        word = _moved(e, register.word, 0x80808080 if values else 0)
        bits = e.permuted(word, str(F32.exponent), str(register.index | 4 << 4 | 5 << 8 | 7 << 12))
    else:
        bits = e.pure(f"or i32 {_whole(e, source, register, values)}, {F32.exponent}")
    large = e.pure(f"bitcast i32 {bits} to float")
    return e.pure(f"fsub float {large}, {e.name(e.constant('f32', float(F32.first + values // 2)))}")


def _pair(e: Emitter, source: str, pair: Sequence[Register], elem: str, scale: _Scale, values: int) -> list[Register]:
    """Two as halves."""
    low, high = pair
    both = scale.exponent * 0x10001
    type = e.llvm[elem]
    if (
        isinstance(low, Part)
        and isinstance(high, Part)
        and low.word == high.word
        and (low.type, low.count) == ("i8", 4)
        and elem == "f16"
    ):
        word = _moved(e, low.word, 0x80808080 if values else 0)
        selector = low.index | 5 << 4 | high.index << 8 | 7 << 12
        bits = e.permuted(word, str(both), str(selector))
    else:
        upper = e.pure(f"shl i32 {_whole(e, source, high, values)}, 16")
        bits = e.pure(f"or i32 {e.pure(f'or i32 {_whole(e, source, low, values)}, {both}')}, {upper}")
    vector = f"<2 x {type}>"
    first = e.name(e.constant(elem, float(scale.first + values // 2)))
    large = e.pure(f"bitcast i32 {bits} to {vector}")
    exact = e.pure(f"fsub {vector} {large}, splat ({type} {first})")
    return e.parts(e.pure(f"bitcast {vector} {exact} to i32"), type, 2)


def _whole(e: Emitter, source: str, register: Register, values: int) -> str:
    """An integer in 32 bits, moved up by half of its range."""
    name = e.name(register)
    return _moved(e, name if source == "i32" else e.pure(f"zext {source} {name} to i32"), values // 2)


def _moved(e: Emitter, word: str, flipped: int) -> str:
    return e.pure(f"xor i32 {word}, {flipped - (1 << 32) if flipped >> 31 else flipped}") if flipped else word
