"""Attributes that Weft reads by name, of operations and of a function's arguments: what their values must be.

    >>> from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
    >>> attribute_error("ttg.num-warps", IntegerAttr(3, i32))
    "'ttg.num-warps' must be a power of two from 1 to 64, not 3"
    >>> attribute_error("somebody.else's", StringAttr("anything"))

Any other attribute says something to somebody else and is kept as it is.
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, DenseIntOrFPElementsAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute

_HINTS = ("tt.divisibility", "tt.contiguity", "tt.constancy")
"""One number, or one for each dimension of a tile."""
_POWERS = {"ttg.num-warps": 64, "ttg.threads-per-warp": 64, "ttg.num-ctas": 16}
"""The sizes of a kernel's launch, and how large they may be."""
_NUMBERS = {"ttg.maxnreg": (1, 1 << 16), "tt.num_stages": (0, 1 << 16), "tt.loop_unroll_factor": (0, 1 << 20)}


def attribute_hint(name: str) -> str:
    """A value that the attribute may have."""
    if name in _HINTS:
        return f"{name} = 16 : i32, or {name} = dense<[1, 16]> : tensor<2xi32> for the dimensions of a tile"
    return f'"{name}" = {4 if name != "ttg.target" else chr(34) + "cuda:90" + chr(34)} is one'


def attribute_error(name: str, value: Attribute) -> str | None:
    """What is wrong with an attribute; None where nothing is."""
    if name in _HINTS:
        if isinstance(value, IntegerAttr | DenseArrayBase):
            return None
        if isinstance(value, DenseIntOrFPElementsAttr) and all(type(x) is int for x in value.get_values()):
            return None
        return f"'{name}' must be an integer, or one for each dimension"
    if name in _POWERS:
        number, most = _number(value), _POWERS[name]
        if number is None or not 1 <= number <= most or number & (number - 1):
            return f"'{name}' must be a power of two from 1 to {most}, not {_told(value)}"
    if name in _NUMBERS:
        number, (low, high) = _number(value), _NUMBERS[name]
        if number is None or not low <= number <= high:
            return f"'{name}' must be an integer from {low} to {high}, not {_told(value)}"
    if name == "ttg.target" and not isinstance(value, StringAttr):
        return f"'{name}' must be a string"
    return None


def _number(value: Attribute) -> int | None:
    return int(value.value.data) if isinstance(value, IntegerAttr) else None


def _told(value: Attribute) -> str:
    number = _number(value)
    return str(value) if number is None else str(number)
