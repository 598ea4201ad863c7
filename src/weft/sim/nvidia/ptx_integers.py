"""What PTX's instructions on bits and integers compute, on arrays of bits ("Integer Arithmetic", "Logic and Shift").

Each function takes the instruction's name, cut at the dots, and operands as bits; it gives bits.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .ptx_text import PTXError
from .ptx_values import BITS, DTYPES, Array, as_bits, viewed

Function = Callable[[tuple[str, ...], list[Array]], Array]
LOW = np.uint64(0xFFFFFFFF)


def _two(function: Callable[[Array, Array], Array]) -> Function:
    """Of two operands of the instruction's type, wrapping; `.sat` of s32 stays in the range."""

    def run(name: tuple[str, ...], x: list[Array]) -> Array:
        a, b = (viewed(v, name[-1]) for v in x)
        if "sat" in name:
            exact = function(a.astype(np.int64), b.astype(np.int64))
            return as_bits(np.clip(exact, -(1 << 31), (1 << 31) - 1).astype(np.int32))
        return as_bits(function(a, b))

    return run


def _one(function: Callable[[Array], Array]) -> Function:
    return lambda name, x: as_bits(np.asarray(function(viewed(x[0], name[-1]))))


def _logic(function: Callable[..., Array]) -> Function:
    def run(name: tuple[str, ...], x: list[Array]) -> Array:
        operands = (v != 0 if name[-1] == "pred" else viewed(v, name[-1]) for v in x)
        return as_bits(np.asarray(function(*operands)))

    return run


def _quotient(a: Array, b: Array) -> Array:
    """Cut towards zero; by zero, which PTX leaves open, 0."""
    divisor = b + (b == 0).astype(b.dtype)
    below = a // divisor
    up = (below * divisor != a) & ((a < 0) != (divisor < 0))
    return np.asarray((below + up.astype(a.dtype)) * (b != 0).astype(a.dtype))


def _product(name: tuple[str, ...], x: list[Array]) -> Array:
    """mul: the lower or upper half, or the whole."""
    type, bits = name[-1], BITS[name[-1]]
    a, b = (viewed(v, type) for v in x[:2])
    if "lo" in name:
        return as_bits(a * b)
    if "hi" in name and bits == 64:
        upper = a.astype(object) * b.astype(object) >> bits
        return np.asarray((upper & (1 << bits) - 1).astype(np.uint64))
    wide = DTYPES[f"{type[0]}{2 * bits}"]
    whole = a.astype(wide) * b.astype(wide)
    return as_bits(whole if "wide" in name else (whole >> bits).astype(a.dtype))


def _product_and_sum(name: tuple[str, ...], x: list[Array]) -> Array:
    product = _product(name, x)
    return np.asarray(product + x[2].astype(product.dtype))


def _shift(name: tuple[str, ...], x: list[Array]) -> Array:
    """shl, shr: the count has 32 bits and no sign; beyond the width nothing stays but a sign."""
    bits, a, count = BITS[name[-1]], viewed(x[0], name[-1]), viewed(x[1], "u32")
    by = np.minimum(count, bits - 1).astype(a.dtype)
    if name[0] == "shr" and name[-1][0] == "s":
        return as_bits(a >> by)
    return as_bits(np.where(count >= bits, a.dtype.type(0), a << by if name[0] == "shl" else a >> by))


def _funnel(name: tuple[str, ...], x: list[Array]) -> Array:
    """shf: of two registers, the first the lower; `.wrap` counts modulo 32, `.clamp` to 32 at most."""
    low, high, count = (v.astype(np.uint64) & LOW for v in x)
    by = count & np.uint64(31) if "wrap" in name else np.minimum(count, np.uint64(32))
    both = low | high << np.uint64(32)
    return np.asarray(((both << by) >> np.uint64(32) if "l" in name else both >> by).astype(np.uint32))


MODES = {
    "f4e": [0x3210, 0x4321, 0x5432, 0x6543], "b4e": [0x5670, 0x6701, 0x7012, 0x0123],
    "rc8": [0x0000, 0x1111, 0x2222, 0x3333], "ecl": [0x3210, 0x3211, 0x3222, 0x3333],
    "ecr": [0x0000, 0x1110, 0x2210, 0x3210], "rc16": [0x1010, 0x3232, 0x1010, 0x3232],
}  # fmt: skip
"""Selectors of four bytes, the highest first, by the mode and the two low bits of the third operand.

f4e, b4e: four bytes in a row, up or down; rc8: one byte four times; ecl, ecr: the bytes, but none before or behind one;
rc16: a half twice.
"""


def _permuted(name: tuple[str, ...], x: list[Array]) -> Array:
    """prmt: bytes of two registers; bit 3 of a selector spreads the byte's top bit."""
    low, high, c = (v.astype(np.uint64) & LOW for v in x)
    both = low | high << np.uint64(32)
    mode = next((part for part in name if part in MODES), None)
    selectors = c if mode is None else np.array(MODES[mode], np.uint64)[(c & np.uint64(3)).astype(np.int64)]
    permuted = np.zeros((), np.uint64)
    for k in range(4):
        selector = selectors >> np.uint64(4 * k)
        byte = both >> (selector & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        spread = (byte >> np.uint64(7)) * np.uint64(255)
        permuted = permuted | np.where(selector & np.uint64(8), spread, byte) << np.uint64(8 * k)
    return np.asarray(permuted.astype(np.uint32))


def _any_logic(name: tuple[str, ...], x: list[Array]) -> Array:
    """lop3: bit 4a + 2b + c of a table."""
    a, b, c = (viewed(v, "b32") for v in x[:3])
    table = int(np.ravel(x[3])[0])
    bits = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for k in range(8):
        if table >> k & 1:
            bits |= (a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c)
    return bits


def _extracted(name: tuple[str, ...], x: list[Array]) -> Array:
    """bfe: a field; above it zeros, or, signed, the top bit of what lies within the register."""
    signed = name[-1][0] == "s"
    a = viewed(x[0], name[-1]).astype(np.int64 if signed else np.uint64)
    start, length = ((v & 255).astype(a.dtype) for v in x[1:])
    shifted = a >> np.minimum(start, 63)
    if not signed:
        shifted = np.where(start > 63, 0, shifted).astype(a.dtype)
    above = 64 - np.clip(length, 1, 64).astype(a.dtype)
    field = np.where(length == 0, 0, shifted << above >> above)
    return np.asarray(field.astype(a.dtype).astype(f"u{BITS[name[-1]] // 8}"))


def _inserted(name: tuple[str, ...], x: list[Array]) -> Array:
    """bfi: the low bits of the first operand into the second."""
    a, b = (viewed(v, name[-1]).astype(np.uint64) for v in x[:2])
    start, length = ((v & 255).astype(np.uint64) for v in x[2:])
    every, by = ~np.uint64(0), np.minimum(start, 63).astype(np.uint64)
    field = np.where(length > 63, every, (np.uint64(1) << np.minimum(length, 63).astype(np.uint64)) - np.uint64(1))
    mask = np.where(start > 63, np.uint64(0), field << by)
    return np.asarray((b & ~mask | a << by & mask).astype(f"u{BITS[name[-1]] // 8}"))


def _leading_zeros(a: Array) -> Array:
    bits = 8 * a.dtype.itemsize
    for shift in (1, 2, 4, 8, 16, 32)[: bits.bit_length() - 1]:
        a = a | a >> a.dtype.type(shift)
    return np.asarray((bits - np.bitwise_count(a)).astype(np.uint32))


def _reversed(a: Array) -> Array:
    bits = np.unpackbits(a.astype(a.dtype.newbyteorder(">"))[..., None].view(np.uint8), axis=-1)
    return np.packbits(bits[..., ::-1], axis=-1).view(a.dtype.newbyteorder(">"))[..., 0].astype(a.dtype)


def _dot_product(name: tuple[str, ...], x: list[Array]) -> Array:
    """dp4a: four products of bytes, added to a word."""
    total = viewed(x[2], "s32").astype(np.int64)
    for k in range(4):
        a, b = (viewed(v >> v.dtype.type(8 * k), f"{t[0]}8") for v, t in zip(x[:2], name[-2:], strict=True))
        total = total + a.astype(np.int64) * b
    return as_bits(total.astype(np.int32))


def _distance(name: tuple[str, ...], x: list[Array]) -> Array:
    """sad: the absolute difference of two, added to a third."""
    a, b, c = (viewed(v, name[-1]) for v in x)
    return as_bits(np.where(a > b, a - b, b - a) + c)


INTEGERS: dict[str, tuple[Function, str]] = {
    "add": (_two(np.add), "sat"), "sub": (_two(np.subtract), "sat"),
    "min": (_two(np.minimum), ""), "max": (_two(np.maximum), ""),
    "mul": (_product, "lo hi wide"), "mad": (_product_and_sum, "lo hi wide"),
    "div": (_two(_quotient), ""), "rem": (_two(lambda a, b: a - _quotient(a, b) * b), ""), "sad": (_distance, ""),
    "and": (_logic(np.bitwise_and), ""), "or": (_logic(np.bitwise_or), ""), "xor": (_logic(np.bitwise_xor), ""),
    "not": (_logic(np.invert), ""), "neg": (_one(np.negative), ""), "abs": (_one(np.abs), ""),
    "cnot": (_one(lambda a: (a == 0).astype(a.dtype)), ""),
    "shl": (_shift, ""), "shr": (_shift, ""), "shf": (_funnel, "l r wrap clamp"), "lop3": (_any_logic, ""),
    "prmt": (_permuted, " ".join(["b32", *MODES])), "bfe": (_extracted, ""), "bfi": (_inserted, ""),
    "popc": (_one(lambda a: np.bitwise_count(a).astype(np.uint32)), ""),
    "clz": (_one(_leading_zeros), ""), "brev": (_one(_reversed), ""), "dp4a": (_dot_product, "u32 s32"),
}  # fmt: skip
"""By the first word of the name: the meaning, and which words may stand between it and the type."""

_COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def compare_integers(relation: str, type: str, a: Array, b: Array) -> Array:
    """setp of integers, and of predicates' bits."""
    if relation not in _COMPARISONS:
        raise PTXError(f"the comparison .{relation} of integers")
    return np.asarray(_COMPARISONS[relation](viewed(a, type), viewed(b, type)))
