"""triton._utils: small functions that tools borrow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.language import TRITON_MAX_TENSOR_NUMEL
from weft.runtime.arrays import dtype_name, element_bytes
from weft.runtime.specialize import find_paths, leaf_at as get_iterable_path

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


def set_iterable_path(iterable: Any, path: tuple[int, ...], value: Any) -> None:
    """Set a leaf of nested lists."""
    get_iterable_path(iterable, path[:-1])[path[-1]] = value


def find_paths_if(iterable: Any, pred: Callable[[tuple[int, ...], Any], bool]) -> list[tuple[int, ...]]:
    """Paths of the leaves for which pred(path, leaf) holds."""
    paths = find_paths(iterable, lambda _: True)
    return [path for path in paths if pred(path, get_iterable_path(iterable, path))]


def get_primitive_bitwidth(dtype: str) -> int:
    """Bits of an element, by its name in a signature."""
    return 8 * element_bytes(dtype)


def canonicalize_dtype(dtype: Any) -> str:
    """The name in a signature of an element type."""
    return dtype_name(dtype)


def canonicalize_ptr_dtype(dtype: Any, is_const: bool) -> str:
    """The type in a signature of an array of that element type."""
    return f"{'*k' if is_const else '*'}{canonicalize_dtype(dtype)}"


def is_iterable(x: Any) -> bool:
    """Whether it is a list or a tuple, of Python or of the language."""
    return isinstance(x, (list, tuple, Iterable)) and not isinstance(x, (str, bytes, dict))


def is_namedtuple(val: Any) -> bool:
    """Whether a class, or the class of an object, is a named tuple."""
    kind = val if isinstance(val, type) else type(val)
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def apply_with_path(value: Any, fn: Callable[[tuple[int, ...], Any], None]) -> None:
    """Call fn(path, leaf) for every leaf of nested sequences, in order."""
    for path in find_paths(value, lambda _: True):
        fn(path, get_iterable_path(value, path))


def is_power_of_two(x: int) -> bool:
    """Whether it is 1, 2, 4, 8, ..."""
    return x > 0 and x & (x - 1) == 0


def validate_block_shape(shape: Sequence[int]) -> int:
    """The number of elements of a tile. TypeError or ValueError where there is no tile of that shape."""
    for i, size in enumerate(shape):
        if not isinstance(size, int):
            raise TypeError(f"Shape element {i} must have type `constexpr[int]`, got `constexpr[{type(size)}]")
        if not is_power_of_two(size):
            raise ValueError(f"Shape element {i} must be a power of 2")
    count = math.prod(shape)
    if count > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"numel ({count}) exceeds triton maximum tensor numel ({TRITON_MAX_TENSOR_NUMEL})")
    return count
