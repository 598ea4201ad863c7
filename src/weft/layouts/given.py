"""A layout as its author gives it, checked and packed: lists of coordinates become the columns of a matrix.

    {"offset": [(0, 1), (1, 1)]}, {"row": 2, "col": 4}   ->   (("offset", 2),), (("row", 1), ("col", 2)), [0b010, 0b011]

The coordinates of a basis are one int, the first output dimension lowest. Everything that a caller can get wrong is
refused here, in the caller's words; the operations of `LinearLayout` pack columns themselves and need no check.
`isinstance` tests for tuples, lists and dicts first, because tests for abstract classes take several times as long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft.base import LayoutError

from .dims import Dims, exact_log2

Basis = Sequence[int]
Bases = Mapping[str, Sequence[Basis]] | Sequence[tuple[str, Sequence[Basis]]]
"""The bases of each input dimension, least significant bit first; each is a coordinate of every output dimension."""
OutDims = Mapping[str, int] | Sequence[str] | Sequence[tuple[str, int]]
"""The output dimensions with their sizes; names alone stand for the least sizes that hold the bases."""


def dims_and_columns(bases: Bases, out_dims: OutDims) -> tuple[Dims, Dims, list[int]]:
    """The input dimensions, the output dimensions, and the packed bases."""
    if not isinstance(bases, (dict, list, tuple, Mapping)):
        raise LayoutError(f"bases must map input dimensions to lists of coordinates, got {bases!r}")
    given = list(bases.items() if isinstance(bases, (dict, Mapping)) else bases)
    for entry in given:
        if not isinstance(entry, (list, tuple)) or len(entry) != 2:
            raise LayoutError(f"bases has the entry {entry!r}, expected pairs of a name and a list of coordinates")
    for name, listed in given:
        if not isinstance(listed, (tuple, list, Sequence, np.ndarray)) or isinstance(listed, (str, bytes)):
            raise LayoutError(f"the bases of {name} must be a list of coordinates, got {listed!r}")
    pairs = [(name, list(listed)) for name, listed in given]
    sizes = _sizes(out_dims, pairs)
    for side, names in (("input", [n for n, _ in pairs]), ("output", [n for n, _ in sizes])):
        if not all(isinstance(n, str) for n in names):
            raise LayoutError(f"the names of {side} dimensions must be strings, got {names}")
        if len(set(names)) != len(names):
            raise LayoutError(f"an {side} dimension is named twice: {', '.join(names)}")
    columns = [_column(name, i, basis, sizes) for name, listed in pairs for i, basis in enumerate(listed)]
    return tuple((name, len(listed)) for name, listed in pairs), sizes, columns


def _sizes(out_dims: OutDims, pairs: Sequence[tuple[str, Sequence[Basis]]]) -> Dims:
    if not isinstance(out_dims, (dict, list, tuple, Mapping)):
        raise LayoutError(f"out_dims must map output dimensions to sizes, or list their names, got {out_dims!r}")
    listed: list[Any] = list(out_dims.items()) if isinstance(out_dims, (dict, Mapping)) else list(out_dims)
    if listed and all(isinstance(entry, str) for entry in listed):
        return tuple((str(name), _least_log(at, pairs)) for at, name in enumerate(listed))
    for entry in listed:
        if not isinstance(entry, (tuple, list)) or len(entry) != 2:
            raise LayoutError(f"out_dims has the entry {entry!r}, expected names, or pairs of name and size")
    return tuple((name, exact_log2(size, f"the output dimension {name}")) for name, size in listed)


def _least_log(at: int, pairs: Sequence[tuple[str, Sequence[Basis]]]) -> int:
    """The least size of the output dimension at this position that holds all bases, as a logarithm."""
    values = [b[at] for _, bs in pairs for b in bs if isinstance(b, Sequence) and at < len(b)]
    return max((int(x).bit_length() for x in values if isinstance(x, (int, np.integer)) and x > 0), default=0)


def _column(name: str, index: int, basis: Basis, outs: Dims) -> int:
    """The coordinates of one basis in one int."""
    if not isinstance(basis, (tuple, list, Sequence, np.ndarray)) or isinstance(basis, str):
        raise LayoutError(
            f"basis {1 << index} of {name} is {basis!r}, expected a coordinate for each of the output dimensions "
            f"({', '.join(n for n, _ in outs)})"
        )
    if len(basis) != len(outs):
        raise LayoutError(
            f"basis {1 << index} of {name} has {len(basis)} coordinates {tuple(basis)}, expected one for each of "
            f"the {len(outs)} output dimensions ({', '.join(n for n, _ in outs)})"
        )
    column, shift = 0, 0
    for value, (out, log) in zip(basis, outs, strict=True):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise LayoutError(
                f"basis {1 << index} of {name} is {tuple(basis)}: its coordinate {value!r} of {out} is no integer; "
                f"legal are 0 .. {(1 << log) - 1}"
            )
        if not 0 <= value < 1 << log:
            raise LayoutError(
                f"basis {1 << index} of {name} is {tuple(basis)}: its coordinate {value} of {out} is outside of "
                f"0 .. {(1 << log) - 1}"
            )
        column |= int(value) << shift
        shift += log
    return column
