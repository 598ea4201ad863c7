"""LLVM IR as text: types, operands in a list, and what an instruction makes of constants."""

from __future__ import annotations

import re
from collections.abc import Callable

BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
TYPE = r"(?:<\d+ x \w+>|ptr addrspace\(\d\)|i\d+\b|half|bfloat|float|double|ptr|void)"


def bits_of(type: str) -> int:
    """Of a scalar type."""
    return BITS.get(type) or int(type[1:])


def split(text: str) -> list[str]:
    """What commas separate outside of brackets.

    >>> split("<2 x i32> <i32 1, i32 2>, i32 %x")
    ['<2 x i32> <i32 1, i32 2>', 'i32 %x']
    """
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and not depth:
            parts.append(text[at:i].strip())
            at = i + 1
    return [*parts, text[at:].strip()] if text.strip() else []


def typed(text: str) -> tuple[str, str]:
    """(type, operand), without what is said of the operand.

    >>> typed("ptr addrspace(1) nonnull %x"), typed("<2 x i32> zeroinitializer")
    (('ptr addrspace(1)', '%x'), ('<2 x i32>', 'zeroinitializer'))
    """
    match = re.match(rf"({TYPE}) (.*)", text)
    assert match is not None, text
    return match[1], re.sub(r"^(?:noundef|nonnull) ", "", match[2])


def members(type: str) -> tuple[int, str]:
    """(elements, type of one); pointers are numbers.

    >>> members("<4 x half>"), members("ptr addrspace(3)")
    ((4, 'half'), (1, 'i32'))
    """
    if type.startswith("ptr"):
        return 1, "i32" if type.endswith("(3)") else "i64"
    count, _, member = type.strip("<>").rpartition(" x ")
    return int(count or 1), member


CONSTANT = r"(?:splat \(i\d+ (-?\d+)\)|(zeroinitializer))"
CAST = re.compile(rf"(zext|sext|trunc) (?:nneg )?<(\d+) x i(\d+)> {CONSTANT} to <\d+ x i(\d+)>$")
BINARY = re.compile(rf"(\w+) (?:[a-z]+ )*<(\d+) x i(\d+)> {CONSTANT}, {CONSTANT}$")
VALUES: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "lshr": lambda a, b: a >> b,
}
"""Of numbers without a sign."""


def folded(text: str) -> str:
    """What an instruction makes of constants that are the same for all lanes; "" where it is none of those.

    >>> folded("zext <16 x i8> splat (i8 -1) to <16 x i32>"), folded("shl <16 x i32> splat (i32 3), splat (i32 8)")
    ('splat (i32 255)', 'splat (i32 768)')
    """
    if match := CAST.match(text):
        op, _, have, number, _, bits = match.groups()
        value = int(number or 0)
        if op == "zext":
            value &= (1 << int(have)) - 1
        return splat(value, int(bits))
    if (match := BINARY.match(text)) and match[1] in VALUES:
        op, _, bits, a, _, b, _ = match.groups()
        every = (1 << int(bits)) - 1
        return splat(VALUES[op](int(a or 0) & every, int(b or 0) & every), int(bits))
    return ""


def splat(value: int, bits: int) -> str:
    """A number of so many bits in all lanes."""
    half = 1 << bits - 1
    return f"splat (i{bits} {(value + half & (1 << bits) - 1) - half})" if bits > 1 else f"splat (i1 {value & 1})"
