"""Instructions that inline assembly on AMD's GPUs may have in the simulator, each with its meaning on registers.

    kinds, result, meaning = ROWS["v_add_f32"]          # ("f32", "f32"), "f32", np.add

Kinds say how the bits of an operand are taken: as numbers of 16, 32 or 64 bits, or as two halves of a register
(`2xf16`). What there is are arithmetic, comparisons and conversions of vector registers and what moves scalar ones;
meanings are those of AMD's instruction set documents. Names without the suffixes of encodings (`_e32`, `_e64`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from weft.ops.floats import fma

from ..values import Array


class Row(NamedTuple):
    """One instruction."""

    operands: tuple[str, ...]
    result: str
    """The kind of the result; `mask` is a bit for each lane."""
    meaning: Callable[..., Array]
    accumulates: bool = False
    """Whether the last operand is the result's register."""


FLOATS = ("f16", "f32", "f64")


def _clamped(x: Array, low: float, high: float) -> Array:
    return np.clip(np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0)), low, high)


def _median(a: Array, b: Array, c: Array) -> Array:
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def _permuted(a: Array, b: Array, selector: Array) -> Array:
    """v_perm_b32: bytes of {a, b}, b's first; 12 is 0, 13 and more 0xff, 8 to 11 signs of every second byte."""
    both = a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64)
    result = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint32)
    for i in range(4):
        code = (selector >> 8 * i & 0xFF).astype(np.uint64)
        byte = both >> (np.minimum(code, 7) * 8) & 0xFF
        sign = np.where(both >> (np.uint64(15) + (code & 3) * 16) & 1, 0xFF, 0)
        byte = np.where(code < 8, byte, np.where(code < 12, sign, np.where(code == 12, 0, 0xFF)))
        result |= byte.astype(np.uint32) << 8 * i
    return result


def _extracted(x: Array, offset: Array, width: Array) -> Array:
    """v_bfe: bits of x, extended by its type."""
    offset, width = offset.astype(np.int64) & 31, width.astype(np.int64) & 31
    wide = x.astype(np.int64) >> offset
    field = wide & (np.int64(1) << width) - 1
    if x.dtype.kind == "u":
        return field
    sign = np.int64(1) << np.maximum(width - 1, 0)
    return np.where(width == 0, 0, (field ^ sign) - sign)


def _chosen(a: Array, b: Array, which: Array) -> Array:
    return np.where(which, b, a)


def _count(x: Array) -> Array:
    """The bits that are 1."""
    return np.asarray(np.add.reduce([x >> i & 1 for i in range(32)], dtype=np.uint32))


def _first_set(x: Array) -> Array:
    """How many zeros are below the lowest 1; all ones for 0."""
    return np.where(x == 0, np.uint32(0xFFFFFFFF), _count(~x & x - np.uint32(1)))


def _leading(x: Array) -> Array:
    """How many zeros are above the highest 1; all ones for 0."""
    return _first_set(_reversed(x))


def _as_f64(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x.astype(np.float64))


UNARY: dict[str, Callable[[Array], Array]] = {
    "rcp": _as_f64(lambda x: 1 / x), "rsq": _as_f64(lambda x: 1 / np.sqrt(x)), "sqrt": _as_f64(np.sqrt),
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rndne": np.rint, "fract": lambda x: x - np.floor(x),
}  # fmt: skip
BINARY: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "subrev": lambda a, b: b - a, "mul": np.multiply, "min": np.fmin, "max": np.fmax,
}  # fmt: skip
RELATIONS: dict[str, np.ufunc] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "lg": np.not_equal,
    "ne": np.not_equal,
}  # fmt: skip
BITWISE: dict[str, Callable[..., Array]] = {
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "xnor": lambda a, b: ~(a ^ b),
}  # fmt: skip


def _floats() -> dict[str, Row]:
    rows = {}
    for kind in FLOATS:
        for name, unary in UNARY.items():
            rows[f"v_{name}_{kind}"] = Row((kind,), kind, unary)
        for name, binary in BINARY.items():
            rows[f"v_{name}_{kind}"] = Row((kind, kind), kind, binary)

        def fused(a: Array, b: Array, c: Array, kind: str = kind) -> Array:
            return fma(a, b, c, kind)

        rows[f"v_fma_{kind}"] = Row((kind,) * 3, kind, fused)
        rows[f"v_fmac_{kind}"] = Row((kind,) * 3, kind, fused, accumulates=True)
        for name, relation in RELATIONS.items():
            rows[f"v_cmp_{name}_{kind}"] = Row((kind, kind), "mask", relation)
    for kind in ("f16", "f32"):
        rows[f"v_exp_{kind}"] = Row((kind,), kind, _as_f64(np.exp2))
        rows[f"v_log_{kind}"] = Row((kind,), kind, _as_f64(np.log2))
        rows[f"v_med3_{kind}"] = Row((kind,) * 3, kind, _median)
        rows[f"v_ldexp_{kind}"] = Row((kind, "i32" if kind == "f32" else "i16"), kind, np.ldexp)
        for name in ("min", "max"):
            both = BINARY[name]
            rows[f"v_{name}3_{kind}"] = Row((kind,) * 3, kind, lambda a, b, c, both=both: both(both(a, b), c))
    for name in ("add", "mul", "min", "max", "fma"):  # two halves of a register
        single = rows[f"v_{name}_f16"]
        rows[f"v_pk_{name}_f16"] = Row(("2xf16",) * len(single.operands), "2xf16", single.meaning)
    for name in ("add", "mul", "fma"):
        single = rows[f"v_{name}_f32"]
        rows[f"v_pk_{name}_f32"] = Row(("2xf32",) * len(single.operands), "2xf32", single.meaning)
    return rows


def _integers() -> dict[str, Row]:
    rows = {
        "v_bfrev_b32": Row(("u32",), "u32", _reversed), "v_not_b32": Row(("u32",), "u32", np.invert),
        "v_mul_lo_u32": Row(("u32", "u32"), "u32", np.multiply),
        "v_mul_hi_u32": Row(("u32", "u32"), "u32", lambda a, b: a.astype(np.uint64) * b >> np.uint64(32)),
        "v_mul_hi_i32": Row(("i32", "i32"), "i32", lambda a, b: a.astype(np.int64) * b >> 32),
        "v_mul_u32_u24": Row(("u24", "u24"), "u32", np.multiply),
        "v_mul_i32_i24": Row(("i24", "i24"), "i32", np.multiply),
        "v_mad_u32_u24": Row(("u24", "u24", "u32"), "u32", lambda a, b, c: a * b + c),
        "v_mad_i32_i24": Row(("i24", "i24", "i32"), "i32", lambda a, b, c: a * b + c),
        "v_lshlrev_b32": Row(("u32", "u32"), "u32", lambda n, x: x << (n & 31)),
        "v_lshrrev_b32": Row(("u32", "u32"), "u32", lambda n, x: x >> (n & 31)),
        "v_ashrrev_i32": Row(("u32", "i32"), "i32", lambda n, x: x >> (n & 31).astype(np.int32)),
        "v_add3_u32": Row(("u32",) * 3, "u32", lambda a, b, c: a + b + c),
        "v_lshl_add_u32": Row(("u32",) * 3, "u32", lambda a, b, c: (a << (b & 31)) + c),
        "v_add_lshl_u32": Row(("u32",) * 3, "u32", lambda a, b, c: a + b << (c & 31)),
        "v_lshl_or_b32": Row(("u32",) * 3, "u32", lambda a, b, c: a << (b & 31) | c),
        "v_and_or_b32": Row(("u32",) * 3, "u32", lambda a, b, c: a & b | c),
        "v_or3_b32": Row(("u32",) * 3, "u32", lambda a, b, c: a | b | c),
        "v_xad_u32": Row(("u32",) * 3, "u32", lambda a, b, c: (a ^ b) + c),
        "v_bfi_b32": Row(("u32",) * 3, "u32", lambda m, a, b: m & a | ~m & b),
        "v_bfe_u32": Row(("u32",) * 3, "u32", _extracted), "v_bfe_i32": Row(("i32", "u32", "u32"), "i32", _extracted),
        "v_alignbit_b32": Row(("u32",) * 3, "u32", lambda a, b, n: _joined(a, b) >> (n & 31).astype(np.uint64)),
        "v_alignbyte_b32": Row(("u32",) * 3, "u32", lambda a, b, n: _joined(a, b) >> ((n & 3) * 8).astype(np.uint64)),
        "v_perm_b32": Row(("u32",) * 3, "u32", _permuted),
        "v_bcnt_u32_b32": Row(("u32", "u32"), "u32", lambda x, more: _count(x) + more),
        "v_ffbl_b32": Row(("u32",), "u32", _first_set), "v_ctz_i32_b32": Row(("u32",), "u32", _first_set),
        "v_ffbh_u32": Row(("u32",), "u32", _leading), "v_clz_i32_u32": Row(("u32",), "u32", _leading),
        "v_cndmask_b32": Row(("u32", "u32", "mask"), "u32", _chosen),
        "s_mul_i32": Row(("u32", "u32"), "u32", np.multiply), "s_not_b32": Row(("u32",), "u32", np.invert),
    }  # fmt: skip
    for suffix in ("", "_nc"):  # of CDNA, of RDNA
        rows |= {f"v_{n}{suffix}_u32": Row(("u32", "u32"), "u32", BINARY[n]) for n in ("add", "sub", "subrev")}
    for kind in ("i32", "u32"):
        extremes: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum}
        for name, extreme in extremes.items():
            rows[f"v_{name}_{kind}"] = rows[f"s_{name}_{kind}"] = Row((kind, kind), kind, extreme)
            rows[f"v_{name}3_{kind}"] = Row((kind,) * 3, kind, lambda a, b, c, f=extreme: f(f(a, b), c))
        rows[f"v_med3_{kind}"] = Row((kind,) * 3, kind, _median)
        rows |= {f"s_{n}_{kind}": Row((kind, kind), kind, BINARY[n]) for n in ("add", "sub")}
        for name, relation in RELATIONS.items():
            rows[f"v_cmp_{name}_{kind}"] = Row((kind, kind), "mask", relation)
    for name, function in BITWISE.items():
        rows[f"v_{name}_b32"] = rows[f"s_{name}_b32"] = Row(("u32", "u32"), "u32", function)
    for bits in (32, 64):
        rows[f"v_mov_b{bits}"] = rows[f"s_mov_b{bits}"] = Row((f"u{bits}",), f"u{bits}", np.positive)
    for name in ("add", "sub"):
        for kind in ("u16", "i16"):
            rows[f"v_pk_{name}_{kind}"] = Row((f"2x{kind}",) * 2, f"2x{kind}", BINARY[name])
    rows["v_pk_mul_lo_u16"] = Row(("2xu16", "2xu16"), "2xu16", np.multiply)
    return rows


def _reversed(x: Array) -> Array:
    result = np.zeros_like(x)
    for i in range(32):
        result |= (x >> i & 1) << 31 - i
    return result


def _joined(high: Array, low: Array) -> Array:
    return high.astype(np.uint64) << np.uint64(32) | low


def _toward_zero(x: Array) -> Array:
    """f32 as f16, rounded toward zero."""
    with np.errstate(all="ignore"):
        half = x.astype(np.float16)
        inside = np.isfinite(x) & (np.abs(half.astype(np.float32)) > np.abs(x))
        return np.where(inside, np.nextafter(half, np.float16(0)), half)


def _pair(a: Array, b: Array) -> Array:
    low, high = (np.asarray(_toward_zero(x)).view(np.uint16).astype(np.uint32) for x in (a, b))
    return low | high << np.uint32(16)


def _conversions() -> dict[str, Row]:
    rows = {
        f"v_cvt_{to}_{of}": Row((of,), to, np.positive)
        for to, of in (("f32", "f16"), ("f16", "f32"), ("f64", "f32"), ("f32", "f64"), ("f32", "i32"), ("f32", "u32"),
                       ("f64", "i32"), ("f64", "u32"))
    }  # fmt: skip
    for of in ("f32", "f64"):
        rows[f"v_cvt_i32_{of}"] = Row((of,), "i32", lambda x: _clamped(x, -(2**31), 2**31 - 1))
        rows[f"v_cvt_u32_{of}"] = Row((of,), "u32", lambda x: _clamped(x, 0, 2**32 - 1))
    for i in range(4):
        rows[f"v_cvt_f32_ubyte{i}"] = Row(("u32",), "f32", lambda x, i=i: np.asarray(x >> np.uint32(8 * i) & 0xFF))
    rows["v_cvt_pkrtz_f16_f32"] = rows["v_cvt_pk_rtz_f16_f32"] = Row(("f32", "f32"), "u32", _pair)
    return rows


ROWS = _floats() | _integers() | _conversions()
