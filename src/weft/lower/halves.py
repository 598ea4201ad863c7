"""Move elements of other sizes as the 16-bit halves of words that matrix instructions move."""

from __future__ import annotations

from weft.ir.lane import ELEMENT_BITS, Value

from .context import Context


def to_halves(c: Context, value: Value) -> Value:
    """Elements of 8 bits (booleans are bytes) in pairs, those of 32 bits in two; those of 16 bits as they are."""
    if value.elem == "i1":
        value = c.build.op("arith.extui", [value], "i8")
    bits = ELEMENT_BITS[value.elem]
    if bits == 8:
        return c.build.add("pack", [value], [("i16", value.count // 2)]).result
    if bits == 32:
        return c.build.add("unpack", [value], [("i16", value.count * 2)]).result
    return value


def from_halves(c: Context, isa: str, address: Value, elem: str, count: int) -> Value:
    """`count` elements loaded by an instruction that gives halves."""
    if elem == "i1":
        return c.build.op("arith.trunci", [from_halves(c, isa, address, "i8", count)], "i1")
    bits = ELEMENT_BITS[elem]
    halves = count * bits // 16
    loaded = c.build.add("instruction", [address], [(elem if bits == 16 else "i16", halves)], {"isa": isa}).result
    if bits == 8:
        return c.build.add("unpack", [loaded], [(elem, count)]).result
    if bits == 32:
        return c.build.add("pack", [loaded], [(elem, count)]).result
    return loaded
