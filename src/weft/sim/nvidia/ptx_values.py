"""Registers of inline assembly as NumPy arrays of bits, seen under the types that PTX's instructions name."""

from __future__ import annotations

import numpy as np

from weft.ops.dtypes import DTYPES
from weft.ops.rounding import round_to

from ..values import Array
from .ptx_text import PTXError

__all__ = ["FLOATS", "PAIRS", "as_bits", "bits_of", "floats", "integers", "is_float", "join_pair", "packed", "pair"]

FLOATS = {name: (name, DTYPES[name]) for name in ("f16", "bf16", "f32", "f64")}
"""PTX's type: its name in a lane program, and NumPy's."""
PAIRS = {"f16x2": "f16", "bf16x2": "bf16", "f32x2": "f32"}


def is_float(type: str) -> bool:
    """Whether a type is a float, or two."""
    return type in FLOATS or type in PAIRS


def bits_of(type: str) -> int:
    """The width of a type; a predicate has 1."""
    if type == "pred":
        return 1
    if type in PAIRS:
        return 2 * bits_of(PAIRS[type])
    if type in ("bf16", "f16"):
        return 16
    digits = type.lstrip("abcdefghijklmnopqrstuvwxyz")
    if type[:1] not in ("b", "u", "s", "f") or digits not in ("8", "16", "32", "64"):
        raise PTXError(f"the type .{type}")
    return int(digits)


def as_bits(x: Array) -> Array:
    """The bits of any array as unsigned integers; predicates stay as they are."""
    return x if x.dtype == np.bool_ else np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


def integers(x: Array, type: str) -> Array:
    """The low bits of a register as integers of a type: signed if it says s, else unsigned."""
    bits = bits_of(type)
    low = x.astype(f"u{bits // 8}")
    return low.view(f"i{bits // 8}") if type[0] == "s" else low


def floats(x: Array, type: str) -> Array:
    """The low bits of a register as floats of a type."""
    dtype = FLOATS[type][1]
    return np.ascontiguousarray(x.astype(f"u{dtype.itemsize}")).view(dtype)


def packed(x: Array, type: str) -> Array:
    """Floats of any kind, rounded once to a type, as bits."""
    return as_bits(round_to(x, FLOATS[type][0]))


def pair(x: Array, bits: int = 32) -> tuple[Array, Array]:
    """The lower and the upper half of a register."""
    half = bits // 2
    kind = f"u{half // 8}"
    wide = x.astype(f"u{bits // 8}")
    return wide.astype(kind), (wide >> wide.dtype.type(half)).astype(kind)


def join_pair(low: Array, high: Array) -> Array:
    """A register of two halves."""
    bits = 8 * low.dtype.itemsize
    kind = np.dtype(f"u{bits // 4}")
    return np.asarray(low.astype(kind) | high.astype(kind) << kind.type(bits))
