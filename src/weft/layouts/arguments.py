"""What callers pass to functions on layouts, checked: a LayoutError says what it must be and what was found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from weft.base import LayoutError

from .linear import LinearLayout

BITS = (1, 2, 4, 8, 16, 32, 64, 128)


def _integer(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def bits_of(value: Any) -> int:
    """The width of an element."""
    if not _integer(value) or value not in BITS:
        raise LayoutError(f"elements have 1, 2, 4, 8, 16, 32, 64 or 128 bits, got {value!r}")
    return int(value)


def shape_of(value: Any, subject: str) -> tuple[int, ...]:
    """Sizes of the dimensions of a tile."""
    if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
        raise LayoutError(f"{subject} must be a list of sizes, got {value!r}")
    sizes = tuple(value)
    for size in sizes:
        if not _integer(size) or size < 1:
            raise LayoutError(f"{subject} must be a list of sizes from 1 on, got {size!r} in it")
    return tuple(int(size) for size in sizes)


def axis_of(value: Any, rank: int, subject: str, *, negative: bool = False) -> int:
    """A dimension; counted from the end if it is negative, where that is allowed."""
    if not _integer(value) or not (-rank if negative else 0) <= value < rank:
        legal = f"from {-rank} to {rank - 1}" if negative else f"from 0 to {rank - 1}"
        raise LayoutError(f"{subject}{f' must be {legal}, got {value!r}' if rank else ': a tile of rank 0 has none'}")
    return int(value) % rank


def linear_of(layout: Any, shape: Sequence[int], subject: str) -> LinearLayout:
    """A linear layout, or that of a named layout for tiles of a shape."""
    if isinstance(layout, LinearLayout):
        return layout
    if not hasattr(layout, "to_linear"):
        raise LayoutError(f"{subject} must be a layout, got {layout!r}")
    linear = layout.to_linear(shape)
    assert isinstance(linear, LinearLayout)
    return linear


# -- names of dimensions -----------------------------------------------------------------------------------------------


def _is_numbered(layout: LinearLayout) -> bool:
    return {*layout.out_dims} == {f"dim{i}" for i in range(len(layout.out_dims))}


def with_names(layout: LinearLayout, dims: Sequence[str]) -> LinearLayout:
    """The layout with names of your own for dim0, dim1, ..., in this order."""
    rank = len(layout.out_dims)
    if not isinstance(dims, (list, tuple)) or not all(isinstance(name, str) and name for name in dims):
        raise LayoutError(f"dims must be a list of names, as ['M', 'N'], got {dims!r}")
    if len(dims) != rank or len(set(dims)) != rank:
        raise LayoutError(f"dims must name the {rank} dimensions of the tile, each once, got {list(dims)}")
    return layout.rename_outs({f"dim{i}": name for i, name in enumerate(dims) if layout.has_out(f"dim{i}")})


def same_names(first: LinearLayout, second: LinearLayout) -> tuple[LinearLayout, LinearLayout]:
    """Both with the same names of dimensions: one that has dim0, dim1, ... takes those of the other."""
    if len(first.out_dims) != len(second.out_dims) or first.out_dims.keys() == second.out_dims.keys():
        return first, second
    if _is_numbered(first):
        return with_names(first, list(second.out_dims)), second
    return first, with_names(second, list(first.out_dims)) if _is_numbered(second) else second
