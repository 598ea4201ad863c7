"""Values known when a kernel is compiled: `constexpr`, and the helpers that look through it.

>>> constexpr(7) // 2 + 1
constexpr[4]

All of Python's operators fold, with Python's meaning: `//` and `%` round down, unlike on tensors. A constexpr of a
constexpr is the inner one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from weft.base import hinted

from .protocol import base_type, base_value


class constexpr_type(base_type):
    """The type of a constexpr: its value is part of it.

    >>> tl.constexpr_type(3)
    constexpr_type[3]
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, constexpr_type):
            return NotImplemented  # the type of a tuple of constants knows
        return bool(self.value == other.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def mangle(self) -> str:
        return repr(self)

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        return

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        return constexpr(self.value), cursor


MOST_BITS = 1 << 16
"""Of an integer known at compile time. The types of the language have 64; Python would go on until memory is full."""


def power(a: Any, b: Any) -> Any:
    """`a ** b` of what is known at compile time, unless it is an integer without end."""
    if isinstance(a, int) and isinstance(b, int) and b > 1:
        _check_size("power", (abs(a).bit_length() - 1) * b)
    return a**b


def shifted_left(a: Any, b: Any) -> Any:
    """`a << b` likewise."""
    if isinstance(a, int) and isinstance(b, int) and a:
        _check_size("shifted integer", b)
    return a << b


def _check_size(subject: str, bits: int) -> None:
    if bits > MOST_BITS:
        hint = "integers of the language have at most 64 bits; write 2.0 ** n for a float"
        raise hinted(OverflowError(f"this {subject} has more than {MOST_BITS} bits"), hint)


def _fold(value: constexpr, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
    if isinstance(other, constexpr):
        other = other.value
    elif isinstance(other, base_value):
        return NotImplemented  # the tensor's own reflected operator is asked
    return constexpr(operation(value.value, other))


def _folding(operation: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    """The methods of an operator: with a constexpr on the left, and with one on the right."""

    def reflected(a: Any, b: Any) -> Any:
        return operation(b, a)

    return (lambda self, other: _fold(self, other, operation)), (lambda self, other: _fold(self, other, reflected))


class constexpr(base_value):
    """A value known when the kernel is compiled; also the annotation of a parameter that is one.

    >>> tl.constexpr(3) + 4
    constexpr[7]
    """

    __slots__ = ("_type", "value")

    def __init__(self, value: Any) -> None:
        while isinstance(value, constexpr):
            value = value.value
        if type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__setitem__"):
            value = value.item()  # a number of NumPy, which its sizes and products are, is that number
        self.value: Any = value
        self._type: constexpr_type | None = None

    @property
    def type(self) -> constexpr_type:  # type: ignore[override]
        """The type, which holds the value."""
        if self._type is None:
            self._type = constexpr_type(self.value)
        return self._type

    def _flatten_ir(self, handles: list[Any]) -> None:
        return

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __hash__(self) -> int:
        return hash((self.value, self.type))

    # As a plain Python value.

    def __index__(self) -> int:
        return self.value  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self.value, (int, float, complex)) or not hasattr(type(self.value), "__iter__"):
            raise TypeError(f"cannot iterate over {self!r}: the value is of type {type(self.value).__name__}")
        return iter(self.value)

    def __getitem__(self, *args: Any) -> Any:
        keys = tuple(unwrap(a) for a in args)
        return self.value.__getitem__(*keys)

    def __call__(self, *args: Any, **kwds: Any) -> Any:
        return self.value(*args, **kwds)

    # Operators.

    __add__, __radd__ = _folding(operator.add)
    __sub__, __rsub__ = _folding(operator.sub)
    __mul__, __rmul__ = _folding(operator.mul)
    __truediv__, __rtruediv__ = _folding(operator.truediv)
    __floordiv__, __rfloordiv__ = _folding(operator.floordiv)
    __mod__, __rmod__ = _folding(operator.mod)
    __pow__, __rpow__ = _folding(power)
    __lshift__, __rlshift__ = _folding(shifted_left)
    __rshift__, __rrshift__ = _folding(operator.rshift)
    __and__, __rand__ = _folding(operator.and_)
    __or__, __ror__ = _folding(operator.or_)
    __xor__, __rxor__ = _folding(operator.xor)
    __lt__, __rlt__ = _folding(operator.lt)
    __le__, __rle__ = _folding(operator.le)
    __gt__, __rgt__ = _folding(operator.gt)
    __ge__, __rge__ = _folding(operator.ge)
    __eq__ = _folding(operator.eq)[0]
    __ne__ = _folding(operator.ne)[0]
    logical_and = _folding(lambda a, b: a and b)[0]
    logical_or = _folding(lambda a, b: a or b)[0]

    def __neg__(self) -> constexpr:
        return constexpr(-self.value)

    def __pos__(self) -> constexpr:
        return constexpr(+self.value)

    def __invert__(self) -> constexpr:
        return constexpr(~self.value)

    def __not__(self) -> constexpr:
        """`not x` (Python has no method for it; the frontend calls this one)."""
        return constexpr(not self.value)


CONSTEXPR_0 = constexpr(0)
"""The default of parameters such as `descending`."""


def unwrap(value: Any) -> Any:
    """The value of a constexpr; lists and tuples are looked through; anything else is returned as it is."""
    if isinstance(value, constexpr):
        return value.value
    if type(value) in (list, tuple):
        return type(value)(unwrap(v) for v in value)
    return value


def unwrap_shape(shape: Any) -> list[int]:
    """A shape given as constexprs, integers, or one constexpr of a sequence, as a list of integers."""
    return [unwrap(s) for s in unwrap(shape)]


def unwrap_iterable(values: Any) -> Any:
    """The one iterable of `values`, or `values`: `f(1, 2)` and `f((1, 2))` mean the same."""
    if len(values) == 1:
        only = unwrap(values[0])
        if isinstance(only, (list, tuple)) or (isinstance(only, base_value) and hasattr(only, "values")):
            return only
        if isinstance(only, Sequence) and not isinstance(only, str):
            return only
    return values


def _told(value: Any) -> str:
    """An object as it says, but for addresses of memory, which nobody wants to read."""
    if callable(value) and hasattr(value, "__name__"):
        return f"{'class' if isinstance(value, type) else 'function'} {value.__name__}"
    text = str(value)
    return f"a {type(value).__name__}" if text.startswith("<") and " at 0x" in text else text


def shown(value: Any) -> str:
    """A value as a message shows it: what exists only when the kernel runs by its type, a module by its name."""
    value = unwrap(value)
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, base_value) and hasattr(value, "values"):
        return f"({', '.join(map(shown, value.values))})"
    kind = getattr(value, "type", None) if isinstance(value, base_value) else None
    if kind is None:
        return repr(value) if isinstance(value, (int, float, str, type(None))) else _told(value)
    return f"{kind.scalar}{list(kind.shape)}" if hasattr(kind, "shape") else str(kind)


def known_flag(value: Any, name: str) -> bool:
    """A yes or no that is known at compile time; numbers and None count as Python counts them."""
    value = unwrap(value)
    if value is None or (hasattr(type(value), "__bool__") and not isinstance(value, base_value)):
        return bool(value)
    raise TypeError(f"{name} must be a constexpr bool, got {shown(value)}")


def known_axis(axis: Any) -> int:
    """An axis, which must be an integer known at compile time."""
    axis = unwrap(axis)
    if isinstance(axis, int):
        return int(axis)
    error = TypeError(f"axis must be a constexpr integer, got {shown(axis)}")
    if isinstance(axis, Iterable) and not isinstance(axis, str):
        raise hinted(error, "one axis at a time; a reduction without an axis is over all elements")
    raise error


def wrap_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the end as one counted from the start."""
    at = known_axis(axis)
    if not -ndim <= at < ndim:
        raise ValueError(f"invalid axis {at}. Expected {-ndim} <= axis < {ndim}")
    return at if at >= 0 else at + ndim
