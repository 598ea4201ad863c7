"""Element-wise operations of lane programs: the rows of `ops.table`, and functions of CUDA's library by symbol."""

from __future__ import annotations

from typing import Any

from weft.ops.dtypes import DTYPES
from weft.ops.table import ROWS, compute

from . import libdevice
from .values import Array


def is_elementwise(name: str) -> bool:
    """Whether `elementwise` knows an operation."""
    return name in ROWS or (name.startswith("libdevice.") and libdevice.known(name.removeprefix("libdevice.")))


def elementwise(name: str, operands: list[Array], elem: str, attrs: dict[str, Any]) -> Any:
    """The result of an element-wise operation, of element type `elem`; two of those that give both halves."""
    if name.startswith("libdevice."):
        return libdevice.run(name.removeprefix("libdevice."), operands, DTYPES[elem])
    return compute(name, operands, elem, attrs)
