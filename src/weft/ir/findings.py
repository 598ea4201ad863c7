"""What debugging finds in values (a division by 0, a shift too far, a float that no integer holds) and tells of it.

A `Source` is an operation whose result may not mean anything; `told_of` says it of the number that was found there:

>>> told_of(Source(1, "divide", "int32"), 7)
('integer division by 0', '7 // 0', ...)

The backend and the simulator report a number and the source; both tell the same of them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.base import Span

_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True)
class Source:
    """An operation that is looked at: its number in the kernel, what it is, and in which type."""

    number: int
    kind: str
    """divide, remainder, shift, gather, to_int, sum or product."""
    type: str
    """Of the result: int32, uint8, ...; of a conversion to an integer `fp32 to int32`."""
    extent: int = 0
    """Of a gather, how many elements the axis has; of a shift, how many bits the type has."""
    span: Span | None = None

    def plain(self) -> list[str | int]:
        """As plain data, which `source_of` reads."""
        s = self.span
        place: list[str | int] = []
        if s is not None:
            place = [s.file, s.line, s.col, s.end_line or 0, s.end_col or 0]
        return [self.number, self.kind, self.type, self.extent, *place]

    @staticmethod
    def of(plain: list[str | int]) -> Source:
        """The source that `plain` wrote."""
        number, kind, type, extent, *place = plain
        span = None
        if place:
            line, col, end_line, end_col = (int(n) for n in place[1:])
            span = Span(str(place[0]), line, col, end_line or None, end_col or None)
        return Source(int(number), str(kind), str(type), int(extent), span)


def explained(fact: Mapping[str, Any], values: Sequence[int], span: Span | None) -> dict[str, Any]:
    """What a `weft.check` that fails says, as the arguments of an error; `fact` has the properties of the operation.

    >>> explained({"what": "assert", "message": "too large", "relation": "slt"}, (12, 9), None)["told"]
    '12 < 9 does not hold'
    """
    message = str(fact.get("message", ""))
    told, hint = "", None
    if fact.get("what") == "found":
        source = next(s for s in map(Source.of, fact["sources"]) if s.number == values[1])
        message, told, hint = told_of(source, values[0])
        span = source.span
    elif fact.get("what") == "stored":
        first, other = (_stored(str(fact["type"]), v) for v in values)
        told = f"{first} is stored there, and {other} by another place"
        hint = "let the mask choose one of the places, or combine the values first, with tl.sum or tl.atomic_add"
    elif fact.get("what") == "value" and values:
        told = f"the value is {values[0]}"
    elif fact.get("relation") and len(values) > 1:
        left, right = (v & (1 << 64) - 1 if fact["relation"][0] == "u" else v for v in values)
        told = f"{left} {_SIGNS[fact['relation'][-2:]]} {right} does not hold"
    if " overflow detected for operation " in message and fact.get("what") != "found":
        told = told.replace("the value is", "the exact result is")
        hint = (
            "widen an operand first, x.to(tl.int64); where wrapping is meant, use tl.add, tl.sub or tl.mul with "
            "sanitize_overflow=False"
        )
    return {"message": message, "span": span, "told": told, "hint": hint}


def _stored(element: str, bits: int) -> str:
    """A number from the bits that it has in memory."""
    if element == "bf16":
        element, bits = "f32", bits << 16
    if element in ("f16", "f32", "f64"):
        size = int(element[1:])
        return str(np.array(bits & (1 << size) - 1, f"u{size // 8}").view(f"f{size // 8}"))
    return str(bits) if element.startswith("i") else f"the {element} with the bits {bits & 255:#04x}"


def told_of(source: Source, result: int) -> tuple[str, str, str]:
    """What is wrong, what was found, and a way out."""
    unsigned = source.type.startswith("u")
    value = result & (1 << 64) - 1 if unsigned else result
    last = source.extent - 1
    if source.kind in ("divide", "remainder"):
        sign = "//" if source.kind == "divide" else "%"
        happened = "integer division by 0" if source.kind == "divide" else "remainder of an integer division by 0"
        return happened, f"{value} {sign} 0", f"divide by something else there: x {sign} tl.where(y != 0, y, 1)"
    if source.kind == "shift":
        way = f"keep the amount below {source.extent}: n & {last}, or tl.where(n < {source.extent}, x << n, 0)"
        return "shift by the width of the type or more", f"{source.extent} bits are shifted by {result}", way
    if source.kind == "gather":
        told = f"the index is {result}, and the axis has elements 0 to {last}"
        return "gather outside of the axis", told, f"clamp the index: tl.minimum(tl.maximum(i, 0), {last})"
    if source.kind == "to_int":
        return _converted(source, result)
    happened = f"{source.type} overflow detected for operation {source.kind}"
    return happened, f"the exact result {_exact(source, result)}", "widen what is combined first, x.to(tl.int64)"


def _exact(source: Source, result: int) -> str:
    """A product is followed only as far as is needed to know that it is too large."""
    if source.kind == "sum":
        return f"is {result}"
    most = 1 << int(source.type.removeprefix("int")) - 1
    return f"is above {most - 1}" if result > 0 else f"is below {-most}"


def _converted(source: Source, result: int) -> tuple[str, str, str]:
    start, _, end = source.type.partition(" to ")
    value = struct.unpack("<d", struct.pack("<q", result))[0]
    shown = np.float32(value) if start != "fp64" else value
    bits = int(end.lstrip("uint"))
    low, high = (0, 2**bits - 1) if end.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if value != value:
        return f"NaN converted to {end}", "the value is nan", "choose an integer for it: tl.where(x == x, x, 0.0)"
    most = float(high) if bits < 24 else float(np.nextafter(np.float32(high + 1), np.float32(0)))  # a float below it
    limits = f"tl.clamp(x, {float(low)}, {most})"
    return f"float outside of the range of {end}", f"the value is {shown}", f"clamp it first: {limits}"
