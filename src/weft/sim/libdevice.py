"""CUDA's library functions by symbol, on arrays: `__nv_` and the name, with an f behind it for f32.

f32 is computed in f64 and rounded, so that results are nearer to the true value than a GPU's. What NumPy has nothing
for, or nothing that is as exact or as right at the ends (functions that round in a direction that is named, Bessel and
gamma functions, inverse error functions, sinpi, nextafter, logb), is run by a library that `extend` was given: the
compiler gives the one that GPU code is made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.ops.dtypes import DTYPES
from weft.ops.integers import unsigned
from weft.ops.row import FLOATS as OF_FLOATS
from weft.ops.table import ROWS, compute

from .values import Array

Function = Callable[[Sequence[Array]], Array]
_libraries: list[Callable[[str], Function | None]] = []


def extend(find: Callable[[str], Function | None]) -> None:
    """Let a library run the symbols that are not here: for a symbol it gives a function of arrays, or None."""
    if find not in _libraries:
        _libraries.append(find)


def _elsewhere(symbol: str) -> Function | None:
    return next((f for f in (find(symbol) for find in _libraries) if f is not None), None)


def _each(fn: Callable[..., float]) -> Callable[..., Array]:
    """A function of Python floats, with what it refuses as NaN."""

    def one(*x: float) -> float:
        try:
            return fn(*x)
        except (ValueError, OverflowError):
            return math.nan

    return lambda *x: np.asarray(np.frompyfunc(one, len(x), 1)(*x), np.float64)


_ELEMENTS = {dtype: elem for elem, dtype in DTYPES.items()}
_OF_FLOATS = [name for name, row in ROWS.items() if name.startswith("math.") and row.kind == OF_FLOATS]
OPERATIONS = {
    **{name.removeprefix("math."): name for name in _OF_FLOATS},
    "pow": "math.powf", "fmod": "arith.remf", "fmin": "arith.minnumf", "fmax": "arith.maxnumf", "fabs": "math.absf",
    "rint": "math.roundeven", "nearbyint": "math.roundeven", "fast_dividef": "arith.divf",
    "abs": "math.absi", "llabs": "math.absi", "clz": "math.ctlz", "clzll": "math.ctlz", "popc": "math.ctpop",
    "popcll": "math.ctpop", "mulhi": "arith.mulhsi", "umulhi": "arith.mulhui",
    **{f"fast_{name}": f"math.{name}" for name in ("sin", "cos", "tan", "log", "log2", "log10", "exp")},
}  # fmt: skip
"""Functions that are operations of the table."""

FLOATS: dict[str, Callable[..., Any]] = {
    "hypot": np.hypot, "powi": np.power, "exp10": lambda x: np.power(10.0, x),
    "fast_exp10": lambda x: np.power(10.0, x), "rcbrt": lambda x: 1 / np.cbrt(x),
    "ldexp": np.ldexp, "scalbn": np.ldexp, "remainder": _each(math.remainder),
    "erfc": _each(math.erfc), "saturate": lambda x: np.fmin(np.fmax(x, 0), 1),
}  # fmt: skip
"""In f64; the result is rounded to the type it is wanted in."""

TESTS: dict[str, Callable[[Array], Any]] = {
    "isnan": np.isnan, "isinf": np.isinf, "finite": np.isfinite, "isfinite": np.isfinite, "signbit": np.signbit,
}  # fmt: skip
"""From floats to integers."""

RENAMED = {"finitef": "finite", "isfinited": "finite", "isnand": "isnan", "isinfd": "isinf", "signbitd": "signbit"}
CASTS = (
    "float_as_int", "int_as_float", "float_as_uint", "uint_as_float", "longlong_as_double", "double_as_longlong",
)  # fmt: skip


def _reversed_bits(x: Array) -> Array:
    u = unsigned(x)
    bits = np.unpackbits(u.view(np.uint8).reshape(*u.shape, -1), axis=-1, bitorder="little")
    return np.packbits(bits[..., ::-1], axis=-1, bitorder="little").view(u.dtype).reshape(u.shape).view(x.dtype)


def _first_bit(x: Array) -> Array:
    return np.where(x == 0, 0, np.bitwise_count(unsigned(x ^ (x - 1)))).astype(np.int32)


INTEGERS: dict[str, Callable[..., Any]] = {
    "ffs": _first_bit, "ffsll": _first_bit, "brev": _reversed_bits, "brevll": _reversed_bits,
    "hadd": lambda x, y: x.astype(np.int64) + y >> 1, "rhadd": lambda x, y: x.astype(np.int64) + y + 1 >> 1,
    "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
}  # fmt: skip


def _name(symbol: str) -> tuple[Mapping[str, Any], str] | None:
    name = symbol.removeprefix("__nv_")
    name = RENAMED.get(name, name)
    for table in (INTEGERS, TESTS, FLOATS, OPERATIONS):
        for candidate in (name, name.removesuffix("f")):
            if candidate in table:
                return table, candidate
    return None


def known(symbol: str) -> bool:
    """Whether a symbol can be run.

    >>> known("__nv_tanf"), known("__nv_no_such_function")
    (True, False)
    """
    return symbol.removeprefix("__nv_") in CASTS or _name(symbol) is not None or _elsewhere(symbol) is not None


def run(symbol: str, operands: list[Array], dtype: np.dtype[Any]) -> Array:
    """A library function on arrays.

    >>> run("__nv_exp2f", [np.float32([3])], np.dtype(np.float32))
    array([8.], dtype=float32)
    """
    if symbol.removeprefix("__nv_") in CASTS:
        return np.ascontiguousarray(operands[0]).view(dtype)
    function = _name(symbol)
    if function is None:
        library = _elsewhere(symbol)
        assert library is not None, symbol
        return library(operands).astype(dtype)
    table, name = function
    if table is OPERATIONS:
        return np.asarray(compute(table[name], operands, _ELEMENTS[operands[0].dtype], {})).astype(dtype)
    if table is INTEGERS:
        return np.asarray(table[name](*operands)).astype(dtype)
    wide = [x.astype(np.float64) if x.dtype.kind not in "iub" else x for x in operands]
    result = np.asarray(table[name](*wide))
    return result.astype(dtype)
