"""triton._utils: small functions that tools borrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.runtime.arrays import dtype_name, element_bytes
from weft.runtime.specialize import find_paths

__all__ = [
    "BITWIDTH_DICT",
    "canonicalize_dtype",
    "find_paths_if",
    "get_iterable_path",
    "get_primitive_bitwidth",
    "set_iterable_path",
    "type_canonicalisation_dict",
]

# Names of an element type by which Triton's tools know it, and its name in a signature.
_SPELLINGS = {
    "u1": "bool int1 uint1 i1",
    "i8": "int8",
    "i16": "int16",
    "i32": "int int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "fp16": "half float16",
    "bf16": "bfloat16",
    "fp32": "float float32",
    "fp64": "double float64",
    "fp8e4nv": "float8e4nv float8_e4m3fn",
    "fp8e5": "float8e5 float8_e5m2",
    "fp8e4b15": "float8e4b15",
    "fp8e4b8": "float8e4b8 float8_e4m3fnuz",
    "fp8e5b16": "float8e5b16 float8_e5m2fnuz",
    "void": "",
}
type_canonicalisation_dict = {name: short for short, names in _SPELLINGS.items() for name in (short, *names.split())}
_BITS = {"u1": 1, "void": 0}
BITWIDTH_DICT = {
    name: _BITS[short] if short in _BITS else 8 * element_bytes(short)
    for name, short in type_canonicalisation_dict.items()
}


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
