"""Bits: logic, shifts, fields, permutations of bytes, moves between registers."""

from __future__ import annotations

import numpy as np

from .arithmetic import applied
from .parsing import Instruction, names
from .state import TYPES, Array, State, Unknown, means

LOW = np.uint64(0xFFFFFFFF)


@means("and", "or", "xor")
def _logic(s: State, i: Instruction) -> None:
    def f(a: Array, b: Array) -> Array:
        return a & b if i.name == "and" else a | b if i.name == "or" else a ^ b

    if i.type == "pred":
        s.write(i.operands[0], f(s.read(i.operands[1], "pred"), s.read(i.operands[2], "pred")))
    else:
        applied(s, i, f, 2)


@means("not")
def _not(s: State, i: Instruction) -> None:
    if i.type == "pred":
        s.write(i.operands[0], ~s.read(i.operands[1], "pred"))
    else:
        applied(s, i, lambda a: ~a, 1)


@means("shl", "shr")
def _shift(s: State, i: Instruction) -> None:
    """Logic and Shift Instructions, shl: the count is 32 bits without sign; beyond the width nothing stays."""
    width = int(i.type[1:])
    a = s.read(i.operands[1], i.type)
    count = s.word(i.operands[2]) & LOW
    if i.type[0] == "s" and i.name == "shr":
        s.write(i.operands[0], (a.astype(np.int64) >> np.minimum(count, 63).astype(np.int64)).astype(a.dtype))
        return
    within = np.minimum(count, np.uint64(63))
    wide = a.astype(np.uint64)
    r = wide << within if i.name == "shl" else wide >> within
    s.write(i.operands[0], np.where(count >= width, np.uint64(0), r).astype(TYPES[f"u{width}"]))


@means("shf")
def _funnel(s: State, i: Instruction) -> None:
    """shf: of two registers, the first the lower; `.wrap` counts modulo 32, `.clamp` to 32 at most."""
    a, b, c = (s.word(operand) & LOW for operand in i.operands[1:4])
    count = c & np.uint64(31) if "wrap" in i.parts else np.minimum(c, np.uint64(32))
    both = a | (b << np.uint64(32))
    s.write(i.operands[0], ((both << count) >> np.uint64(32) if "l" in i.parts else both >> count) & LOW)


@means("lop3")
def _lop3(s: State, i: Instruction) -> None:
    """lop3: bit 4a + 2b + c of the table."""
    if len(i.operands) != 5:
        raise Unknown(i.text)
    a, b, c = (s.read(operand, "b32") for operand in i.operands[1:4])
    table = int(i.operands[4], 0)
    r = np.zeros(s.threads, np.uint32)
    for k in range(8):
        if table >> k & 1:
            r |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    s.write(i.operands[0], r)


def _field(value: int, start: int, length: int, width: int, signed: bool) -> int:
    if length == 0:
        return 0
    sign = value >> min(width - 1, start + length - 1) & 1 if signed else 0
    field = value >> start & (1 << length) - 1
    if sign:
        field |= -1 << max(0, min(length, width - start))
    return field % (1 << width)


@means("bfe")
def _extract(s: State, i: Instruction) -> None:
    """bfe: start and length are 8 bits; signed, what is beyond the field or the register is the field's top bit."""
    width = int(i.type[1:])
    given = (s.word(operand).tolist() for operand in i.operands[1:4])
    out = [_field(a % (1 << width), p & 255, n & 255, width, i.type[0] == "s") for a, p, n in zip(*given, strict=True)]
    s.write(i.operands[0], np.array(out, np.uint64))


@means("bfi")
def _insert(s: State, i: Instruction) -> None:
    """bfi: the first operand's low bits into the second, from a start, so many."""
    every = (1 << int(i.type[1:])) - 1
    out: list[int] = []
    for a, b, start, length in zip(*(s.word(operand).tolist() for operand in i.operands[1:5]), strict=True):
        mask = ((1 << (length & 255)) - 1 << (start & 255)) & every
        out.append(b & every & ~mask | a << (start & 255) & mask)
    s.write(i.operands[0], np.array(out, np.uint64))


@means("popc", "clz", "brev")
def _count(s: State, i: Instruction) -> None:
    width = int(i.type[1:])
    values = s.read(i.operands[1], i.type).tolist()
    if i.name == "popc":
        out = [v.bit_count() for v in values]
    elif i.name == "clz":
        out = [width - v.bit_length() for v in values]
    else:
        out = [int(f"{v:0{width}b}"[::-1], 2) for v in values]
    s.write(i.operands[0], np.array(out, np.uint64))


@means("prmt")
def _permute(s: State, i: Instruction) -> None:
    """Data Movement and Conversion Instructions, prmt: bytes of two registers; bit 3 of a selector spreads a top bit.

    The modes look at the two low bits of the third operand only. f4e, b4e: four bytes in a row, up or down; rc8: one
    byte four times; ecl, ecr: the bytes, but none before or behind one; rc16: a half twice.
    """
    a, b, c = (s.word(operand) & LOW for operand in i.operands[1:4])
    both = a | (b << np.uint64(32))
    mode = next((part for part in i.parts if part in MODES), "")
    table = np.array(MODES[mode] if mode else [0], np.uint64)
    selectors = table[(c & np.uint64(3)).astype(np.int64)] if mode else c
    r = s.every(0)
    for k in range(4):
        selector = selectors >> np.uint64(4 * k) & np.uint64(15)
        byte = both >> (selector & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        spread = np.where(byte >> np.uint64(7) == 1, np.uint64(255), np.uint64(0))
        r |= np.where(selector >> np.uint64(3) == 1, spread, byte) << np.uint64(8 * k)
    s.write(i.operands[0], r)


MODES = {
    "f4e": [0x3210, 0x4321, 0x5432, 0x6543],
    "b4e": [0x5670, 0x6701, 0x7012, 0x0123],
    "rc8": [0x0000, 0x1111, 0x2222, 0x3333],
    "ecl": [0x3210, 0x3211, 0x3222, 0x3333],
    "ecr": [0x0000, 0x1110, 0x2210, 0x3210],
    "rc16": [0x1010, 0x3232, 0x1010, 0x3232],
}
"""Selectors of four bytes, the highest first, by the mode and the low bits of the third operand."""


@means("mov")
def _move(s: State, i: Instruction) -> None:
    """mov: a register to several or back, the first the lowest bits."""
    to, source = i.operands
    if to.startswith("{") or source.startswith("{"):
        parts = names(to if to.startswith("{") else source)
        width = int(i.type[1:]) // len(parts)
        mask = np.uint64((1 << width) - 1)
        if to.startswith("{"):
            word = s.word(source)
            for k, name in enumerate(parts):
                s.write(name, word >> np.uint64(width * k) & mask)
            return
        word = s.every(0)
        for k, name in enumerate(parts):
            word |= (s.word(name) & mask) << np.uint64(width * k)
        s.write(to, word)
    else:
        s.write(to, s.read(source, i.type))
