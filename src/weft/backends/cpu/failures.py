"""What a failed check becomes: the number that the kernel left, and the facts noted when compiling, as an error.

    error_of(fact, Found((3, 0, 0), place=491, values=(address, 0)), arrays, "k")

A fact is what `Context.add_assert` and `add_check` note; arrays are those that the kernel checks its accesses against.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.base import DeviceAssertionError, OutOfBoundsError, Span
from weft.ir.findings import explained


@dataclass(frozen=True)
class Array:
    """An array of a launch: its parameter, its address, and the addresses between which its elements lie."""

    name: str
    address: int
    low: int
    high: int

    def distance(self, address: int, size: int) -> int:
        """How many bytes an element at an address is outside; negative before the array, 0 inside."""
        if address < self.low:
            return address - self.low
        return max(0, address + size - self.high)


@dataclass(frozen=True)
class Found:
    """Where a check failed: the program, the element of the tile in row-major order, and the values there."""

    program: tuple[int, ...]
    place: int = 0
    values: Sequence[int] = ()


def error_of(fact: Mapping[str, Any], report: Found, arrays: Sequence[Array], kernel: str) -> DeviceAssertionError:
    """The error that a failed assertion or check is."""
    span = None
    if fact.get("file"):
        line, column = int(fact.get("line", 1)), int(fact.get("col", 0))
        span = Span(fact["file"], line, column, fact.get("end_line"), fact.get("end_col"))
    shape = tuple(int(n) for n in fact.get("shape") or ())
    where: dict[str, Any] = {
        "span": span,
        "program": report.program,
        "function": fact.get("func") or None,
        "kernel": kernel,
        "position": _unravel(report.place, shape) if shape else None,
        "shape": shape or None,
    }
    if fact.get("what") in ("load", "store", "atomic"):
        return _out_of_bounds(fact, report, [arrays[k] for k in fact["arrays"]], where)
    return DeviceAssertionError(**{**where, **explained(fact, report.values, span)})


def _out_of_bounds(
    fact: Mapping[str, Any], report: Found, arrays: Sequence[Array], where: Mapping[str, Any]
) -> OutOfBoundsError:
    """Say which element of which array was asked for, and how far outside it is."""
    size, address = int(fact["bytes"]), report.values[0]
    array = min(arrays, key=lambda a: abs(a.distance(address, size)))
    index = (address - array.address) // size
    first, last = (array.low - array.address) // size, (array.high - array.address) // size - 1
    if array.high - array.low < size:
        extent = "is empty"
    else:
        distance = index - last if index > last else first - index
        side = "past its last" if index > last else "before its first"
        extent = f"has elements {first} to {last}: {distance} {side}"
    message = f"{fact['what']} of element {index} of `{array.name}`, which {extent}"
    others = " or ".join(f"`{a.name}`" for a in arrays if a is not array)
    if others:
        message += f"; nor is it an element of {others}"
    return OutOfBoundsError(message, **where, argument=array.name, index=index, hint=_way_out(fact))


def _way_out(fact: Mapping[str, Any]) -> str:
    if fact.get("masked"):
        return "the mask is true at that place: compare it with the sizes and the strides of the array"
    if "masked" not in fact:
        return "tl.atomic_cas takes no mask: put it into an `if`, or clamp the offsets with tl.minimum"
    call = {
        "load": "tl.load(pointer, mask=offsets < size, other=0)",
        "store": "tl.store(pointer, value, mask=offsets < size)",
        "atomic": "tl.atomic_add(pointer, value, mask=offsets < size)",
    }[fact["what"]]
    block = "; for a block pointer, boundary_check=(0, 1)" if fact["what"] != "atomic" else ""
    return f"there is no mask: {call}{block}"


def _unravel(place: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The indices of an element from its number in row-major order."""
    indices = []
    for size in reversed(shape):
        indices.append(place % size)
        place //= size
    return tuple(reversed(indices))
