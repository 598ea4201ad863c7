"""What PTX's instructions on floats compute, and conversions, on arrays of bits.

Approximations (`ex2.approx`, `tanh.approx`, ...) are computed in f64 and rounded, as those of the simulator's own
operations are. A rounding other than to nearest is found by one step back from the nearest value.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft.ops.floats import fma
from weft.ops.rounding import round_to

from ..libdevice import known
from ..libdevice import run as library
from ..values import DTYPES, Array
from .ptx_text import PTXError
from .ptx_values import FLOATS, PAIRS, as_bits, bits_of, floats, integers, is_float, join_pair, packed, pair

__all__ = ["compare_floats", "convert", "float_operation"]

_ROUNDINGS = {"rz": "rz", "rm": "rd", "rp": "ru"}
"""PTX's directions, and libdevice's names of them."""
_EIGHT = {"e4m3x2": "f8E4M3FN", "e5m2x2": "f8E5M2"}


def _minimum(a: Array, b: Array, parts: tuple[str, ...]) -> Array:
    return np.asarray(np.minimum(a, b) if "NaN" in parts else np.fmin(a, b))


def _maximum(a: Array, b: Array, parts: tuple[str, ...]) -> Array:
    return np.asarray(np.maximum(a, b) if "NaN" in parts else np.fmax(a, b))


TWO: dict[str, Callable[[Array, Array, tuple[str, ...]], Array]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "div": lambda a, b, _: a / b,
    "min": _minimum,
    "max": _maximum,
    "copysign": lambda a, b, _: np.copysign(b, a),
}
ONE: dict[str, Callable[[Array], Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "rcp": lambda a: 1 / a,
    "ex2": np.exp2,
    "lg2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
}
SIGNS = ("neg", "abs")


def _flushed(x: Array) -> Array:
    """Denormals of f32 as zeros."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x).astype(x.dtype)


def _finished(parts: tuple[str, ...], bits: Array, type: str) -> Array:
    """.sat, .relu and .ftz of a result."""
    x = floats(bits, type)
    if "sat" in parts:
        x = np.where(np.isnan(x), 0, np.clip(x.astype(np.float64), 0, 1)).astype(x.dtype)
    if "relu" in parts:
        x = np.where(x < 0, 0, x).astype(x.dtype)
    return as_bits(_flushed(x) if "ftz" in parts and type == "f32" else x)


def _directed(name: str, parts: tuple[str, ...], given: list[Array], type: str) -> Array | None:
    """By libdevice's functions that round in a direction, if this is one."""
    direction = next((_ROUNDINGS[p] for p in parts if p in _ROUNDINGS), None)
    if direction is None:
        return None
    letter = "d" if type == "f64" else "f"
    symbol = f"__nv_fma{'' if type == 'f64' else 'f'}_{direction}" if name in ("fma", "mad") else ""
    symbol = symbol or f"__nv_{letter}{name}_{direction}"
    if type not in ("f32", "f64") or not known(symbol):
        raise PTXError(".".join(parts))
    return library(symbol, given, given[0].dtype)


def float_operation(parts: tuple[str, ...], x: list[Array]) -> Array | None:
    """An arithmetic instruction whose type is a float, or a pair of them; None if its name is none of these."""
    name, type = parts[0], parts[-1]
    if name not in TWO and name not in ONE and name not in ("fma", "mad"):
        return None
    if type in PAIRS:
        single = (*parts[:-1], PAIRS[type])
        halves = [pair(v, bits_of(type)) for v in x]
        low, high = (float_operation(single, [h[i] for h in halves]) for i in (0, 1))
        assert low is not None and high is not None
        return join_pair(low, high)
    given = [floats(v, type) for v in x]
    if "ftz" in parts and type == "f32":
        given = [_flushed(v) for v in given]
    directed = _directed(name, parts, given, type)
    if directed is not None:
        found = as_bits(directed)
    elif name in ("fma", "mad"):
        found = as_bits(fma(given[0], given[1], given[2], FLOATS[type][0]))
    elif name in SIGNS:
        found = as_bits(ONE[name](given[0]))
    elif name in ONE:
        found = packed(ONE[name](given[0].astype(np.float64)), type)
    else:
        wide = [v.astype(np.float64 if type == "f64" else np.float32) for v in given]
        found = packed(TWO[name](wide[0], wide[1], parts), type)
    return _finished(parts, found, type)


# -- comparisons ------------------------------------------------------------------------------------------------------

_ORDERED = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def compare_floats(relation: str, type: str, a: Array, b: Array) -> Array:
    """setp of floats: `lt` is false and `ltu` is true where either is NaN."""
    x, y = (floats(v, type).astype(np.float64) for v in (a, b))
    nan = np.isnan(x) | np.isnan(y)
    if relation in ("num", "nan"):
        return nan if relation == "nan" else ~nan
    plain = relation if relation in _ORDERED else relation.removesuffix("u")
    if plain not in _ORDERED:
        raise PTXError(f"the comparison .{relation} of floats")
    found = np.asarray(_ORDERED[plain](x, y))
    return found | nan if plain != relation else found & ~nan


# -- conversions ------------------------------------------------------------------------------------------------------


def convert(parts: tuple[str, ...], x: list[Array]) -> Array:
    """cvt, of one operand or of two that become a pair."""
    to, source = parts[-2:]
    if to in _EIGHT or source in _EIGHT or "e2m1" in to + source:
        return _eight_bits(parts, x)
    if to in PAIRS:
        low, high = (convert((*parts[:-2], PAIRS[to], source), [v]) for v in (x[1], x[0]))
        return join_pair(low, high)
    if to == "tf32":
        bits = x[0].astype(np.uint32)
        nan = np.isnan(floats(bits, "f32")) | np.isinf(floats(bits, "f32"))
        return np.where(nan, bits, bits + np.uint32(0x1000) & np.uint32(0xFFFFE000)).astype(np.uint32)
    if is_float(source):
        given = floats(x[0], source)
        given = _flushed(given) if "ftz" in parts and source == "f32" else given
        return _from_float(parts, given, source, to)
    number = integers(x[0], source)
    if not is_float(to):
        return _between_integers(parts, number, to)
    if not {"rz", "rm", "rp"} & set(parts):
        return packed(number.astype(np.float64) if number.dtype.itemsize < 8 else number.astype(FLOATS[to][1]), to)
    raise PTXError(".".join(parts))


def _between_integers(parts: tuple[str, ...], number: Array, to: str) -> Array:
    if "sat" in parts:
        limits = np.iinfo(f"{'i' if to[0] == 's' else 'u'}{bits_of(to) // 8}")
        low, high = (int(v) for v in (np.iinfo(number.dtype).min, np.iinfo(number.dtype).max))
        number = np.clip(number, max(low, int(limits.min)), min(high, int(limits.max)))
    return as_bits(number.astype(f"u{bits_of(to) // 8}"))


_WHOLE: dict[str, Callable[[Array], Array]] = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _from_float(parts: tuple[str, ...], x: Array, source: str, to: str) -> Array:
    whole = next((_WHOLE[p] for p in parts if p in _WHOLE), None)
    wide = x.astype(np.float64)
    if whole is not None:
        wide = whole(wide)
    if is_float(to):
        return _finished(parts, _rounded(parts, wide, to), to)
    limits = np.iinfo(f"{'i' if to[0] == 's' else 'u'}{bits_of(to) // 8}")
    wide = np.where(np.isnan(wide), 0, wide)
    low, high = float(limits.min), float(limits.max)
    inside = np.clip(wide, low, np.nextafter(high, 0) if bits_of(to) == 64 else high).astype(limits.dtype)
    return as_bits(np.where(wide >= high, limits.max, inside).astype(limits.dtype))


def _rounded(parts: tuple[str, ...], wide: Array, to: str) -> Array:
    """To nearest, or in the direction that is said."""
    near = floats(packed(wide, to), to)
    direction = next((p for p in parts if p in _ROUNDINGS), None)
    if direction is None or to == "f64":
        return as_bits(near)
    back = near.astype(np.float64)
    goal = {"rz": np.zeros_like(back), "rm": np.full_like(back, -np.inf), "rp": np.full_like(back, np.inf)}[direction]
    over = (back > wide) & (goal < back) if direction != "rp" else back < wide
    if direction == "rz":
        over = np.abs(back) > np.abs(wide)
    return as_bits(np.where(over, np.nextafter(near, goal.astype(near.dtype)), near).astype(near.dtype))


def _eight_bits(parts: tuple[str, ...], x: list[Array]) -> Array:
    to, source = parts[-2:]
    if to in _EIGHT and source == "f32":
        values = [floats(x[1], "f32"), floats(x[0], "f32")]
    elif to in _EIGHT and source == "f16x2":
        values = [floats(v, "f16") for v in pair(x[0])]
    elif to == "f16x2" and source in _EIGHT:
        halves = pair(x[0], 16)
        wide = [v.view(DTYPES[_EIGHT[source]]).astype(np.float32) for v in halves]
        return join_pair(*(_finished(parts, packed(v, "f16"), "f16") for v in wide))
    else:
        raise PTXError(".".join(parts))
    if "relu" in parts:
        values = [np.where(v < 0, 0, v).astype(v.dtype) for v in values]
    return join_pair(*(as_bits(round_to(v, _EIGHT[to])) for v in values))
