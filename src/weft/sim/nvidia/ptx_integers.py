"""What PTX's instructions on bits and integers compute, on arrays of bits.

Each function takes the instruction's name, cut at the dots, and operands as bits; it gives bits. Their meaning is that
of NVIDIA's PTX ISA 8.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arithmetic import elementwise
from ..libdevice import run as library
from ..values import Array
from .ptx_text import PTXError
from .ptx_values import as_bits, bits_of, integers

__all__ = ["INTEGERS", "compare_integers"]

Function = Callable[[tuple[str, ...], list[Array]], Array]


def _plain(name: str) -> Function:
    """Of two operands of the instruction's type, wrapping; `.sat` of s32 stays in the range."""

    def run(parts: tuple[str, ...], x: list[Array]) -> Array:
        a, b = (integers(v, parts[-1]) for v in x)
        if "cc" in parts:
            raise PTXError("carries")
        if "sat" in parts:
            exact = getattr(np, name)(a.astype(np.int64), b.astype(np.int64))
            return as_bits(np.clip(exact, -(1 << 31), (1 << 31) - 1).astype(np.int32))
        return as_bits(getattr(np, name)(a, b))

    return run


def _divided(name: str) -> Function:
    def run(parts: tuple[str, ...], x: list[Array]) -> Array:
        a, b = (integers(v, parts[-1]) for v in x)
        signed, bits = parts[-1][0] == "s", bits_of(parts[-1])
        a, b = (v.view(f"i{bits // 8}") for v in (a, b))
        return as_bits(elementwise(f"arith.{name}{'s' if signed else 'u'}i", [a, b], f"i{bits}", {}))

    return run


def _product(parts: tuple[str, ...], x: list[Array]) -> Array:
    """mul.lo, .hi and .wide, of 16 to 64 bits."""
    type = parts[-1]
    a, b = integers(x[0], type), integers(x[1], type)
    if "lo" in parts:
        return as_bits(a * b)
    if bits_of(type) == 64:
        if "hi" not in parts:
            raise PTXError(f"mul.wide.{type}")
        symbol = "__nv_mul64hi" if type[0] == "s" else "__nv_umul64hi"
        return as_bits(library(symbol, [as_bits(v).view(np.int64) for v in (a, b)], np.dtype(np.int64)))
    twice = f"{type[0]}{2 * bits_of(type)}"
    whole = integers(as_bits(a.astype(np.int64)), twice) * integers(as_bits(b.astype(np.int64)), twice)
    if "wide" in parts:
        return as_bits(whole)
    if "hi" in parts:
        return as_bits((whole >> whole.dtype.type(bits_of(type))).astype(a.dtype))
    raise PTXError(".".join(parts))


def _product_and_sum(parts: tuple[str, ...], x: list[Array]) -> Array:
    product = _product(parts, x[:2])
    return as_bits(product + x[2].astype(product.dtype))


def _bitwise(function: Callable[..., Array]) -> Function:
    def run(parts: tuple[str, ...], x: list[Array]) -> Array:
        if parts[-1] == "pred":
            return np.asarray(function(*(v.astype(np.bool_) for v in x)))
        return as_bits(function(*(integers(v, "b" + parts[-1][1:]) for v in x)))

    return run


def _shift(left: bool) -> Function:
    def run(parts: tuple[str, ...], x: list[Array]) -> Array:
        type = parts[-1]
        bits, a, amount = bits_of(type), integers(x[0], type), x[1].astype(np.uint64)
        beyond = amount >= bits
        by = np.where(beyond, 0, amount).astype(f"u{bits // 8}").view(a.dtype)
        if left:
            return as_bits(np.where(beyond, 0, a << by).astype(a.dtype))
        filled = a >> a.dtype.type(bits - 1) if type[0] == "s" else np.zeros_like(a)
        return as_bits(np.where(beyond, filled, a >> by).astype(a.dtype))

    return run


def _funnel(parts: tuple[str, ...], x: list[Array]) -> Array:
    """shf: 32 bits out of 64."""
    both = x[1].astype(np.uint64) << np.uint64(32) | x[0].astype(np.uint32).astype(np.uint64)
    amount = x[2].astype(np.uint32)
    by = (amount & np.uint32(31) if "wrap" in parts else np.minimum(amount, 32)).astype(np.uint64)
    if "l" in parts:
        return np.where(by == 32, both << np.uint64(32), both << (by & np.uint64(31))).astype(np.uint64) >> np.uint64(
            32
        )
    return both >> by


def _chosen_bytes(parts: tuple[str, ...], x: list[Array]) -> Array:
    if parts[-1] != "b32":
        raise PTXError(".".join(parts))
    both = x[1].astype(np.uint64) << np.uint64(32) | x[0].astype(np.uint32).astype(np.uint64)
    found = np.zeros(np.broadcast_shapes(*(v.shape for v in x)), np.uint64)
    for i in range(4):
        control = x[2].astype(np.uint64) >> np.uint64(4 * i)
        byte = both >> (control & np.uint64(7)) * np.uint64(8) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), 255, 0).astype(np.uint64)
        found = found | np.where(control & np.uint64(8), sign, byte) << np.uint64(8 * i)
    return found.astype(np.uint32)


def _any_logic(parts: tuple[str, ...], x: list[Array]) -> Array:
    """lop3: a table of 8 bits, one for each combination."""
    a, b, c = (v.astype(np.uint32) for v in x[:3])
    table = int(np.ravel(x[3])[0])
    found = np.zeros(np.broadcast_shapes(a.shape, b.shape, c.shape), np.uint32)
    for i in range(8):
        if table >> i & 1:
            found = found | (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c)
    return found


def _extracted(parts: tuple[str, ...], x: list[Array]) -> Array:
    """bfe: zero, or the sign, stands above the field."""
    type = parts[-1]
    bits = bits_of(type)
    a, start, length = x[0].astype(np.uint64), (x[1] & x[1].dtype.type(255)), (x[2] & x[2].dtype.type(255))
    at, size = np.minimum(start, bits).astype(np.uint64), np.minimum(length, 64).astype(np.uint64)
    mask = np.where(size >= 64, np.uint64(2**64 - 1), (np.uint64(1) << (size & np.uint64(63))) - np.uint64(1))
    low = np.where(at >= bits, np.uint64(0), a >> (at & np.uint64(63)))
    if type[0] == "u":
        return (low & mask).astype(f"u{bits // 8}")
    last = np.minimum(at.astype(np.int64) + size.astype(np.int64) - 1, bits - 1)
    sign = (a >> np.maximum(last, 0).astype(np.uint64) & np.uint64(1)).astype(np.bool_) & (size > 0)
    inside = np.minimum(size.astype(np.int64), np.maximum(bits - at.astype(np.int64), 0)).astype(np.uint64)
    kept = np.where(inside >= 64, np.uint64(2**64 - 1), (np.uint64(1) << (inside & np.uint64(63))) - np.uint64(1))
    return np.where(sign, low & kept | ~kept, low & kept).astype(f"u{bits // 8}")


def _inserted(parts: tuple[str, ...], x: list[Array]) -> Array:
    """bfi: the low bits of a into b."""
    bits = bits_of(parts[-1])
    a, b = (v.astype(np.uint64) for v in x[:2])
    start, length = ((v & v.dtype.type(255)).astype(np.uint64) for v in x[2:])
    size = np.minimum(length, np.uint64(64))
    mask = np.where(size >= 64, np.uint64(2**64 - 1), (np.uint64(1) << (size & np.uint64(63))) - np.uint64(1))
    mask = np.where(start >= bits, np.uint64(0), mask << (start & np.uint64(63)))
    found = b & ~mask | (a << (start & np.uint64(63))) & mask
    return np.asarray(found.astype(f"u{bits // 8}"))


def _counted(symbol: str) -> Function:
    def run(parts: tuple[str, ...], x: list[Array]) -> Array:
        bits = bits_of(parts[-1])
        wide = integers(x[0], f"s{bits}")
        return as_bits(library(f"__nv_{symbol}{'ll' if bits == 64 else ''}", [wide], np.dtype(np.int32)))

    return run


def _reversed(parts: tuple[str, ...], x: list[Array]) -> Array:
    bits = bits_of(parts[-1])
    wide = integers(x[0], f"s{bits}")
    return as_bits(library(f"__nv_brev{'ll' if bits == 64 else ''}", [wide], wide.dtype))


def _dot_product(parts: tuple[str, ...], x: list[Array]) -> Array:
    """dp4a: four products of bytes, added to a word."""
    total = x[2].astype(np.int64)
    for i in range(4):
        a, b = (integers(v >> v.dtype.type(8 * i), f"{t[0]}8") for v, t in zip(x[:2], parts[-2:], strict=True))
        total = total + a.astype(np.int64) * b
    return total.astype(np.int32).view(np.uint32)


def _distance(parts: tuple[str, ...], x: list[Array]) -> Array:
    a, b = (integers(v, parts[-1]) for v in x[:2])
    return as_bits(np.where(a > b, a - b, b - a) + integers(x[2], parts[-1]))


def _one(function: Callable[[Array], Array]) -> Function:
    return lambda parts, x: as_bits(np.asarray(function(integers(x[0], parts[-1]))))


INTEGERS: dict[str, Function] = {
    "add": _plain("add"), "sub": _plain("subtract"), "min": _plain("minimum"), "max": _plain("maximum"),
    "mul": _product, "mad": _product_and_sum, "div": _divided("div"), "rem": _divided("rem"), "sad": _distance,
    "and": _bitwise(np.bitwise_and), "or": _bitwise(np.bitwise_or), "xor": _bitwise(np.bitwise_xor),
    "not": _bitwise(np.invert), "neg": _one(np.negative), "abs": _one(np.abs),
    "cnot": _one(lambda a: (a == 0).astype(a.dtype)),
    "shl": _shift(left=True), "shr": _shift(left=False), "shf": _funnel, "prmt": _chosen_bytes, "lop3": _any_logic,
    "bfe": _extracted, "bfi": _inserted, "popc": _counted("popc"), "clz": _counted("clz"), "brev": _reversed,
    "dp4a": _dot_product,
}  # fmt: skip

_COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip


def compare_integers(relation: str, type: str, a: Array, b: Array) -> Array:
    """setp of integers."""
    if relation not in _COMPARISONS:
        raise PTXError(f"the comparison .{relation} of integers")
    return np.asarray(_COMPARISONS[relation](integers(a, type), integers(b, type)))
