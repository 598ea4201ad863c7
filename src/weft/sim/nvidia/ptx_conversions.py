"""cvt: between integers and floats of all widths, on arrays of bits ("Data Movement and Conversion: cvt").

>>> converted(("cvt", "rni", "s32", "f32"), [np.float32([2.5, 3e9]).view(np.uint32)])
array([         2, 2147483647], dtype=uint32)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .ptx_floats import DIRECTIONS, finished, flushed, rounded
from .ptx_text import PTXError
from .ptx_values import BITS, BYTES, PAIRS, Array, as_bits, halves, is_float, joined, viewed

CONVERSION_WORDS = "rn rz rm rp rna rni rzi rmi rpi ftz sat satfinite relu"
_WHOLE: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def converted(name: tuple[str, ...], x: list[Array]) -> Array:
    """A number in another type; two, the first the higher, in a pair."""
    to, source = name[-2:]
    if to in BYTES or source in BYTES:
        return _bytes(name, x)
    if to in PAIRS:
        low, high = (converted((*name[:-2], PAIRS[to], source), [v]) for v in (x[1], x[0]))
        return joined(low, high)
    if to == "tf32":
        return _tf32(name, viewed(x[0], "b32"))
    values = viewed(x[0], source)
    if not is_float(source):
        return _from_integer(name, values, to)
    if "ftz" in name and source == "f32":
        values = flushed(values, source)
    whole = next((_WHOLE[part] for part in name if part in _WHOLE), None)
    wide = values.astype(np.float64) if whole is None else whole(values.astype(np.float64))
    if is_float(to):
        name = tuple(part for part in name if part != "ftz" or to == "f32")
        return finished(name, _toward(name, wide, to), to)
    if whole is None:
        raise PTXError(f"`{'.'.join(name)}`")
    limits, bits = _limits(to), BITS[to]
    nan = 1 << bits - 1 if bits == 64 or source == "f64" else 0
    inside = (wide > int(limits.min)) & (wide < int(limits.max))
    clipped = np.where(inside, wide, 0).astype(limits.dtype)
    least, most = (np.array(v, limits.dtype) for v in (limits.min, limits.max))
    clipped = np.where(inside, clipped, np.where(wide > 0, most, least))
    return _widened(np.where(np.isnan(wide), np.array(nan, np.uint64).astype(limits.dtype), clipped))


def _limits(type: str) -> Any:
    return np.iinfo(f"{'i' if type[0] == 's' else 'u'}{BITS[type] // 8}")


def _widened(x: Array) -> Array:
    """Bits of an integer; a signed one fills a wider register by its sign."""
    return as_bits(x.astype(np.int32) if x.dtype.kind == "i" and x.dtype.itemsize < 4 else x)


def _from_integer(name: tuple[str, ...], x: Array, to: str) -> Array:
    if not is_float(to):
        limits, source = _limits(to), np.iinfo(x.dtype)
        if "sat" in name:
            x = np.clip(x, max(int(limits.min), int(source.min)), min(int(limits.max), int(source.max)))
        return _widened(x.astype(limits.dtype))
    if DIRECTIONS.keys() & set(name):
        raise PTXError(f"`{'.'.join(name)}`")
    if to == "bf16" and x.dtype.itemsize == 8:  # what f64 has no room for stays visible in its last bit
        x = np.where(np.abs(x.astype(np.float64)) < 2.0**52, x, x >> 11 << 11 | (x & 0x7FF != 0).astype(x.dtype) << 11)
    return as_bits(rounded(x.astype(np.float32 if to == "f32" else np.float64), to))


def _toward(name: tuple[str, ...], wide: Array, to: str) -> Array:
    """f64 to nearest, or in the direction that the name says."""
    near = rounded(wide, to)
    direction = next((part for part in name if part in DIRECTIONS), None)
    if "satfinite" in name or "rna" in name:
        raise PTXError(f"`{'.'.join(name)}`")
    if direction is None:
        return near
    beyond = np.sign(near.astype(np.float64) - np.where(np.isfinite(wide), wide, near))
    moved = {"rz": np.sign(wide) * beyond > 0, "rm": beyond > 0, "rp": beyond < 0}[direction]
    return np.asarray(np.where(moved, np.nextafter(near, near.dtype.type(DIRECTIONS[direction])), near))


def _tf32(name: tuple[str, ...], bits: Array) -> Array:
    """Ten bits of fraction: to nearest, half way away from zero (rna) or to even (rn), or towards zero."""
    if "rna" in name:
        near = bits + np.uint32(0x1000)
    else:
        near = bits if "rz" in name else bits + np.uint32(0xFFF) + (bits >> 13 & 1)
    rounded = np.where(np.isfinite(bits.view(np.float32)), near & np.uint32(0xFFFFE000), bits)
    return finished(name, rounded.view(np.float32), "f32")


def _bytes(name: tuple[str, ...], x: list[Array]) -> Array:
    """Two floats of eight bits. `.satfinite`: what is too large becomes the largest, NaN 0x7f."""
    to, source = name[-2:]
    if to == "f16x2":
        return joined(*(finished(name, v.view(BYTES[source]).astype(np.float16), "f16") for v in halves(x[0], 16)))
    if source == "f32":
        values = [viewed(v, "f32") for v in (x[1], x[0])]
    elif source == "f16x2":
        values = [viewed(v, "f16").astype(np.float32) for v in halves(x[0], 32)]
    else:
        raise PTXError(f"`{'.'.join(name)}`")
    if "relu" in name:
        values = [np.where(v < 0, 0, v).astype(v.dtype) for v in values]
    largest = {"e4m3x2": 448.0, "e5m2x2": 57344.0}[to]
    near = [as_bits(np.clip(v, -largest, largest).astype(BYTES[to])) for v in values]
    return joined(*(np.where(np.isnan(v), np.uint8(0x7F), n) for v, n in zip(values, near, strict=True)))
