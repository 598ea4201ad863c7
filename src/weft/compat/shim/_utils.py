"""triton._utils: small functions that tools borrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.runtime.arrays import dtype_name, element_bytes
from weft.runtime.specialize import find_paths

__all__ = ["canonicalize_dtype", "find_paths_if", "get_iterable_path", "get_primitive_bitwidth", "set_iterable_path"]


def get_iterable_path(iterable: Any, path: tuple[int, ...]) -> Any:
    """The leaf of nested sequences at a path."""
    for index in path:
        iterable = iterable[index]
    return iterable


def set_iterable_path(iterable: Any, path: tuple[int, ...], value: Any) -> None:
    """Set a leaf of nested lists."""
    get_iterable_path(iterable, path[:-1])[path[-1]] = value


def find_paths_if(iterable: Any, pred: Callable[[tuple[int, ...], Any], bool]) -> list[tuple[int, ...]]:
    """Paths of the leaves for which pred(path, leaf) holds."""
    found = find_paths(iterable, lambda _: True)
    return [path for path in found if pred(path, get_iterable_path(iterable, path))]


def get_primitive_bitwidth(dtype: str) -> int:
    """Bits of an element, by its name in a signature."""
    return 8 * element_bytes(dtype)


def canonicalize_dtype(dtype: Any) -> str:
    """The name in a signature of an element type."""
    return dtype_name(dtype)
