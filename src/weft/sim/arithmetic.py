"""Element-wise operations of lane programs: the rows of `ops.table`, and functions of CUDA's library by symbol."""

from __future__ import annotations

from typing import Any

from weft.ops.dtypes import DTYPES
from weft.ops.table import ROWS, compute

from . import libdevice
from .values import Array

__all__ = ["elementwise", "is_elementwise"]

_NAMES = ("exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "erf", "fma", "cbrt")
LIBDEVICE = {f"libdevice.{name}": f"math.{name}" for name in _NAMES} | {
    "libdevice.__nv_fmaf": "math.fma",
    "libdevice.__nv_fma": "math.fma",
}
"""Functions of the library that are operations."""


def is_elementwise(name: str) -> bool:
    """Whether `elementwise` knows an operation."""
    name = LIBDEVICE.get(name, name)
    return name in ROWS or (name.startswith("libdevice.") and libdevice.known(name.removeprefix("libdevice.")))


def elementwise(name: str, operands: list[Array], elem: str, attrs: dict[str, Any]) -> Any:
    """The result of an element-wise operation, of element type `elem`; two of those that give both halves."""
    name = LIBDEVICE.get(name, name)
    if name.startswith("libdevice."):
        return libdevice.run(name.removeprefix("libdevice."), operands, DTYPES[elem])
    return compute(name, operands, elem, attrs)
