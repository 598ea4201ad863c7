"""cvt: between integers and floats of all widths. PTX ISA, "Data Movement and Conversion Instructions: cvt"."""

from __future__ import annotations

import numpy as np

from .arithmetic import flushed, is_float, to_bf16
from .parsing import Instruction
from .state import BF16, E4M3, E5M2, TYPES, Array, State, Unknown, bits_of, means

PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
BYTES = {"e4m3x2": (E4M3, 448.0), "e5m2x2": (E5M2, 57344.0)}
"""Floats of 8 bits, two in a register, and the largest."""
WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@means("cvt")
def _convert(s: State, i: Instruction) -> None:
    to, source = i.parts[-2:]
    if "relu" in i.parts or "scaled" in i.parts:
        raise Unknown(i.text)
    if source in BYTES:
        value = _from_bytes(s, i, source)
    elif to in BYTES:
        value = _to_bytes(s, i, to, source)
    elif to in PAIRS:
        high, low = (_rounded(s.read(operand, "f32"), TYPES[PAIRS[to]], i) for operand in i.operands[1:3])
        value = bits_of(low) | bits_of(high) << np.uint64(16)
    elif to == "tf32":
        value = _to_tf32(s, i)
    elif to not in TYPES or source not in TYPES:
        raise Unknown(i.text)
    else:
        value = _between_numbers(s, i, to, source)
    s.write(i.operands[0], value)


def _between_numbers(s: State, i: Instruction, to: str, source: str) -> Array:
    a = s.read(i.operands[1], source)
    if "ftz" in i.parts and source == "f32":
        a = flushed(a)
    if is_float(source):
        return _float_to_float(a, i, to) if is_float(to) else _float_to_integer(a, i, to, source)
    if is_float(to):
        return _integer_to_float(a, i, to)
    return _integer_to_integer(a, i, to, source)


def _from_bytes(s: State, i: Instruction, source: str) -> Array:
    word, result = s.word(i.operands[1]), s.every(0)
    if i.parts[-2] != "f16x2":
        raise Unknown(i.text)
    for k in range(2):
        byte = (word >> np.uint64(8 * k)).astype(np.uint8).view(BYTES[source][0])
        result |= bits_of(byte.astype(np.float16)) << np.uint64(16 * k)
    return result


def _to_bytes(s: State, i: Instruction, to: str, source: str) -> Array:
    """`.satfinite`: what is too large becomes the largest, NaN 0x7f."""
    if source == "f32":
        high, low = (s.read(operand, "f32") for operand in i.operands[1:3])
    elif source == "f16x2":
        word = s.word(i.operands[1])
        low, high = ((word >> np.uint64(k)).astype(np.uint16).view(np.float16).astype(np.float32) for k in (0, 16))
    else:
        raise Unknown(i.text)
    dtype, largest = BYTES[to]
    result = s.every(0)
    for k, value in enumerate((low, high)):
        byte = np.clip(value, -largest, largest).astype(dtype).view(np.uint8)
        result |= np.where(np.isnan(value), np.uint8(0x7F), byte).astype(np.uint64) << np.uint64(8 * k)
    return result


def _to_tf32(s: State, i: Instruction) -> Array:
    """`.rna`: to the nearest of 10 bits of fraction, half way away from zero."""
    if "rna" not in i.parts:
        raise Unknown(i.text)
    bits = s.read(i.operands[1], "b32")
    near = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    finite = np.isfinite(bits.view(np.float32))
    return np.where(finite, near, bits)


def _rounded(a: Array, dtype: np.dtype[np.generic], i: Instruction) -> Array:
    """To a narrower float: to nearest even, or towards zero."""
    if {"rm", "rp", "rna", "rs", "satfinite"} & set(i.parts):
        raise Unknown(i.text)
    near: Array = to_bf16(a.astype(np.longdouble)) if dtype == BF16 and a.dtype == np.float64 else a.astype(dtype)
    if "rz" not in i.parts:
        return near
    bits = near.view(f"u{near.dtype.itemsize}")
    above = np.abs(near.astype(np.float64)) > np.abs(a.astype(np.float64))
    return np.asarray(np.where(above, bits - 1, bits).astype(bits.dtype).view(dtype))


def _float_to_float(a: Array, i: Instruction, to: str) -> Array:
    whole = next((WHOLE[part] for part in i.parts if part in WHOLE), None)
    if whole is not None:
        a = whole(a.astype(np.float64)).astype(a.dtype)
    if "sat" in i.parts:
        a = np.where(np.isnan(a), 0, np.clip(a, 0, 1)).astype(a.dtype)
    result = _rounded(a, TYPES[to], i)
    return flushed(result) if "ftz" in i.parts and to == "f32" else result


def _float_to_integer(a: Array, i: Instruction, to: str, source: str) -> Array:
    """What is out of range becomes the nearest in range; NaN becomes 0, and the top bit where either has 64 bits."""
    rounding = next((WHOLE[part] for part in i.parts if part in WHOLE), None)
    if rounding is None:
        raise Unknown(i.text)
    bits = int(to[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    nan = 1 << bits - 1 if bits == 64 or source == "f64" else 0
    values = rounding(a.astype(np.float64)).tolist()
    out = [nan if v != v else high if v >= high else low if v <= low else int(v) for v in values]
    return _register([v % (1 << bits) for v in out], to)


def _register(values: list[int], to: str) -> Array:
    """Bits of a type in a register: beyond a signed type there are copies of its sign."""
    bits = int(to[1:])
    signed = [v - (1 << bits) if to[0] == "s" and v >> bits - 1 else v for v in values]
    return np.array([v % (1 << 64) for v in signed], np.uint64)


def _integer_to_float(a: Array, i: Instruction, to: str) -> Array:
    exact = int(i.parts[-1][1:]) <= {"f16": 8, "bf16": 8, "f32": 16, "f64": 32}[to]
    if "rn" not in i.parts and not exact:
        raise Unknown(i.text)
    if to == "bf16":
        return to_bf16(a.astype(np.longdouble))
    return np.asarray(a.astype(np.longdouble).astype(TYPES[to])) if to == "f16" else a.astype(TYPES[to])


def _integer_to_integer(a: Array, i: Instruction, to: str, source: str) -> Array:
    if "sat" in i.parts:
        raise Unknown(i.text)
    bits = int(to[1:])
    wide = (a.astype(np.int64).view(np.uint64) if source[0] == "s" else a.astype(np.uint64)) & np.uint64(
        (1 << bits) - 1
    )
    if to[0] == "s" and bits < 64:
        return np.where(wide >> np.uint64(bits - 1) == 1, wide | np.uint64((1 << 64) - (1 << bits)), wide)
    return wide
