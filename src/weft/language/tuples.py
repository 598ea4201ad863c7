"""Tuples of values in kernels, their types, and slices.

    a, b = tl.tuple((x, y))
    t.field                       # where the tuple came from a namedtuple

A tuple of n values is their IR values one after the other.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

from .constants import constexpr, constexpr_type, unwrap
from .dtypes import dtype
from .protocol import base_type, base_value

_list, _tuple, _slice = builtins.list, builtins.tuple, builtins.slice


class slice:
    """A slice in an index, `a:b:c`.

    >>> evaluate("x[tl.slice(None, None, None), None]", x=[1, 2]).shape
    (2, 1)
    """

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start = start
        self.stop = stop
        self.step = step
        self.type: Any = None


class tuple_type(base_type):
    """The types of the values of a tuple, and the names of its fields where it has some.

    `of` is the class of Python's that has these fields: functions of the host get its instances.

    >>> tl.tuple_type([tl.int32, tl.float32], ["index", "value"]).name
    '[index:int32,value:fp32]'
    """

    def __init__(self, types: Sequence[Any], fields: Sequence[str] | None = None, of: Any = None) -> None:
        self.of = of
        self.types = _list(types)
        self.fields = _list(fields) if fields else [""] * len(self.types)

    @property
    def name(self) -> str:
        """The text of the type, `[x:fp32,y:int32]`."""
        return "[" + ",".join(f"{f}:{t}" for f, t in zip(self.fields, self.types, strict=True)) + "]"

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    @property
    def constants(self) -> Sequence[Any] | None:
        """The values, where all of them are known when the kernel is compiled; else None."""
        values = []
        for type in self.types:
            if isinstance(type, constexpr_type):
                values.append(type.value)
            elif isinstance(type, tuple_type) and type.constants is not None:
                values.append(type.constants)
            else:
                return None
        return _tuple(values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, constexpr_type):  # a tuple of constants is one constant
            return self.constants is not None and self.constants == _plain(other.value)
        return isinstance(other, tuple_type) and self.types == other.types and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((_tuple(self.types), _tuple(self.fields)) if self.constants is None else self.constants)

    def _as_carried(self) -> base_type:
        return tuple_type([type._as_carried() for type in self.types], self.fields, self.of)

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        for type in self.types:
            type._flatten_ir_types(builder, out)

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> Any:
        values = []
        for type in self.types:
            value, cursor = type._unflatten_ir(handles, cursor)
            values.append(value)
        return tuple(values, self), cursor

    def mangle(self) -> str:
        return "T" + "_".join(type.mangle() for type in self.types) + "T"


def type_for_tuple_values(values: Sequence[Any], fields: Sequence[str] | None = None) -> tuple_type:
    """The type of a tuple of these values."""
    return tuple_type([constexpr_type(v) if isinstance(v, (int, float, dtype)) else v.type for v in values], fields)


class tuple(base_value):
    """A tuple of values of the language.

    >>> evaluate("(x, n)", x=[1, 2], n=3)
    (array([1, 2], dtype=int32), 3)
    """

    def __init__(self, args: Sequence[Any], type: tuple_type | None = None) -> None:
        self.values = _list(args)
        if isinstance(type, tuple_type):
            self._type: tuple_type | None = type
        elif type is not None:
            self._type = type_for_tuple_values(self.values, type)
        else:
            self._type = None

    @property
    def type(self) -> tuple_type:  # type: ignore[override]
        """The types of the values; computed when asked for."""
        if self._type is None:
            self._type = type_for_tuple_values(self.values)
        return self._type

    def __getitem__(self, idx: Any) -> Any:
        idx = unwrap(idx)
        if isinstance(idx, int):
            if not -len(self.values) <= idx < len(self.values):
                raise IndexError(f"index {idx} is outside a tuple of {len(self.values)} values")
            return self.values[idx]
        if isinstance(idx, (_slice, slice)):
            return tuple(self.values[_slice(unwrap(idx.start), unwrap(idx.stop), unwrap(idx.step))])
        raise TypeError(f"a tuple is indexed with an integer known at compile time or a slice, not {idx}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._type is None or name not in self._type.fields:
            fields = ", ".join(f for f in self._type.fields if f) if self._type is not None else ""
            raise AttributeError(f"this tuple has no field `{name}`" + (f"; its fields are {fields}" if fields else ""))
        return self.values[self._type.fields.index(name)]

    def _setitem(self, idx: Any, value: Any) -> None:
        """Replace a value; the type follows."""
        self.values[unwrap(idx)] = value
        self._type = type_for_tuple_values(self.values, self._type.fields if self._type is not None else None)

    def __add__(self, other: Any) -> tuple:
        return tuple(self.values + _list(unwrap(other)))

    def __radd__(self, other: Any) -> tuple:
        return tuple(_list(unwrap(other)) + self.values)

    def __mul__(self, other: Any) -> tuple:
        if not isinstance(unwrap(other), int):
            raise TypeError("a tuple can be repeated only a number of times known at compile time")
        return tuple(self.values * unwrap(other))

    def __eq__(self, other: object) -> Any:
        values = _as_values(other)
        if values is None:
            return constexpr(False)
        return constexpr(len(self.values) == len(values) and all(map(_same, self.values, values)))

    def __ne__(self, other: object) -> Any:
        return constexpr(not self.__eq__(other).value)

    def __hash__(self) -> int:
        return hash(_tuple(self.values))

    def __iter__(self) -> Iterator[Any]:
        return iter(constexpr(v) if isinstance(v, (int, float)) else v for v in self.values)

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        return str([str(v) for v in self.values])

    def __repr__(self) -> str:
        return "(" + ", ".join(repr(v) for v in self.values) + ("," if len(self.values) == 1 else "") + ")"

    def _flatten_ir(self, handles: list[Any]) -> None:
        for value in self.values:
            value._flatten_ir(handles)


def _as_values(other: Any) -> Any:
    if isinstance(other, constexpr):
        other = other.value
    if isinstance(other, tuple):
        return other.values
    return other if isinstance(other, (_list, _tuple)) else None


def _plain(value: Any) -> Any:
    """A constant as Python has it: tuples of it are Python's."""
    value = unwrap(value)
    values = _as_values(value)
    return value if values is None else _tuple([_plain(v) for v in values])


def _same(left: Any, right: Any) -> bool:
    """Equal as compile-time values; values of the IR are equal when they are the same value."""
    left, right = unwrap(left), unwrap(right)
    if isinstance(left, base_value) and isinstance(right, base_value) and not isinstance(left, tuple):
        mine: list[Any] = []
        theirs: list[Any] = []
        left._flatten_ir(mine)
        right._flatten_ir(theirs)
        return bool(left.type == right.type) and list(map(id, mine)) == list(map(id, theirs))
    return bool(left == right)


def normalize_tuple(value: Any) -> Any:
    """Python's tuples and lists (also inside one another) as tuples of the language."""
    if isinstance(value, (_list, _tuple)):
        converted = tuple([normalize_tuple(v) for v in value])
        fields = getattr(value, "_fields", None)
        if fields:
            converted._type = type_for_tuple_values(converted.values, fields)
        return converted
    if isinstance(value, tuple):
        return tuple([normalize_tuple(v) for v in value.values], value._type)
    return value
