"""Attributes that operations carry: makers that keep what they made, and readers.

An enumeration (`enums`) is an `i32` in the IR, as in Triton's generic form (`cache = 1 : i32`), and a word in its text.

>>> from weft.ir.enums import CacheModifier
>>> str(enum_attr(CacheModifier.CG))
'3 : i32'

A constant tile of one value is a splat. It is stored as that one value however large the tile is, and read back with
`splat_value`; xDSL's own `DenseIntOrFPElementsAttr.from_list` would store it once for each element.

>>> from weft.ir.types import f32, tensor_of
>>> big = splat_attr(tensor_of((1024, 1024), f32), 1.5)
>>> len(big.data.data), splat_value(big)
(4, 1.5)
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

from xdsl.dialects import builtin
from xdsl.ir import Attribute

from .types import i1, i32


@lru_cache(maxsize=4096)
def int_attr(
    value: int, type: builtin.IntegerType | builtin.IndexType = i32
) -> builtin.IntegerAttr[builtin.IntegerType | builtin.IndexType]:
    """An integer of the given type; a value outside its range is an error."""
    return builtin.IntegerAttr(
        int(value), type
    )  # an enumeration is equal to its number, and would be kept in its place


def i32_attr(value: int) -> builtin.IntegerAttr[builtin.IntegerType | builtin.IndexType]:
    """An `i32` attribute."""
    return int_attr(value, i32)


_TRUE, _FALSE = builtin.IntegerAttr(1, i1), builtin.IntegerAttr(0, i1)


def bool_attr(value: bool) -> builtin.IntegerAttr[builtin.IntegerType]:
    """`true` or `false`."""
    return _TRUE if value else _FALSE


def enum_attr(value: IntEnum) -> builtin.IntegerAttr[builtin.IntegerType | builtin.IndexType]:
    """An enumeration's value as the IR stores it."""
    return int_attr(int(value), i32)


def float_attr(value: float, type: Attribute) -> Attribute:
    """A float attribute, rounded to its type."""
    return builtin.FloatAttr(value, type)  # type: ignore


@lru_cache(maxsize=4096)
def str_attr(value: str) -> builtin.StringAttr:
    """A string attribute."""
    return builtin.StringAttr(value)


_UNIT = builtin.UnitAttr()


def unit_attr() -> builtin.UnitAttr:
    """The attribute whose presence is its value."""
    return _UNIT


@lru_cache(maxsize=1024)
def _i32_array(values: tuple[int, ...]) -> builtin.DenseArrayBase[builtin.IntegerType]:
    return builtin.DenseArrayBase.from_list(i32, values)


def i32_array(values: Iterable[int]) -> builtin.DenseArrayBase[builtin.IntegerType]:
    """`array<i32: ...>`, as in `order` and `boundaryCheck`."""
    return _i32_array(tuple(values))


def segments(*sizes: int) -> builtin.DenseArrayBase[builtin.IntegerType]:
    """The value of `operandSegmentSizes`: how many operands each group has."""
    return _i32_array(sizes)


_EMPTY_DICT = builtin.DictionaryAttr({})


def empty_dict() -> builtin.DictionaryAttr:
    """The dictionary with nothing in it."""
    return _EMPTY_DICT


def splat_attr(type: builtin.TensorType[Attribute], value: int | float) -> builtin.DenseIntOrFPElementsAttr:
    """The constant tile whose every element is `value`."""
    element = type.element_type
    if isinstance(element, builtin.IntegerType):
        value = element.get_normalized_value(int(value))
    else:
        value = float(value)
    return builtin.DenseIntOrFPElementsAttr(type, builtin.BytesAttr(element.pack((value,))))  # type: ignore


def dense_attr(
    type: builtin.TensorType[Attribute], values: Iterable[int] | Iterable[float]
) -> builtin.DenseIntOrFPElementsAttr:
    """The constant tile of these values in row-major order; a tile of equal values becomes a splat."""
    listed = tuple(values)
    if len(set(map(repr, listed))) == 1:
        return splat_attr(type, listed[0])
    element = type.element_type
    if isinstance(element, builtin.IntegerType):
        listed = tuple(element.get_normalized_value(int(v)) for v in listed)
    return builtin.DenseIntOrFPElementsAttr(type, builtin.BytesAttr(element.pack(listed)))  # type: ignore


def splat_value(attr: Attribute) -> int | float | None:
    """The one value of a splat, an integer or a float attribute; None for anything else."""
    if isinstance(attr, builtin.IntegerAttr):
        return attr.value.data
    if isinstance(attr, builtin.FloatAttr):
        return attr.value.data
    if isinstance(attr, builtin.DenseIntOrFPElementsAttr):
        element = attr.type.element_type
        size = element.compile_time_size
        data = attr.data.data
        if len(data) == size or (len(data) > size and data == data[:size] * (len(data) // size)):
            return element.unpack(data[:size], 1)[0]  # type: ignore
    return None


def dense_values(attr: builtin.DenseIntOrFPElementsAttr) -> tuple[int, ...] | tuple[float, ...]:
    """The stored values of a constant tile: one for a splat, otherwise all in row-major order."""
    element = attr.type.element_type
    count = len(attr.data.data) // element.compile_time_size
    return element.unpack(attr.data.data, count)


def int_value(attr: Attribute) -> int:
    """The value of an integer attribute."""
    if not isinstance(attr, builtin.IntegerAttr):
        raise ValueError(f"expected an integer attribute, got {attr}")
    return attr.value.data


def ints_of(attr: Attribute | None) -> tuple[int, ...]:
    """The values of an `array<i32: ...>`; `()` where there is none."""
    return () if attr is None else tuple(attr.get_values())  # type: ignore
