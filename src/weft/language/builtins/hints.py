"""Hints to the compiler, prints and assertions."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from weft.base import hinted

from ..constants import known_flag, shown, unwrap
from ..protocol import GIVEN, builtin
from ..tensors import tensor

if TYPE_CHECKING:
    from ..annotations import Value
    from ..semantic import TritonSemantic

__all__ = [
    "device_assert",
    "device_print",
    "expect_zero",
    "max_constancy",
    "max_contiguous",
    "multiple_of",
]


def _input(value: Any, name: str) -> Any:
    """What a hint is about: a tensor, or a number that has none to promise."""
    if not isinstance(value, tensor):
        raise TypeError(f"{name} takes a tensor, got {shown(value)}")
    return value


def _values(values: Any) -> list[int]:
    """A hint's numbers: one, or one for each dimension."""
    values = unwrap(values)
    listed = list(values) if hasattr(values, "__iter__") and not isinstance(values, tensor) else [values]
    numbers = []
    for position, value in enumerate(listed):
        if isinstance(value, tensor):
            raise TypeError(f"values element {position} must have type `constexpr`, got a tensor")
        value = unwrap(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"values element {position} must have type `constexpr[int]`, got {value!r}")
        numbers.append(value)
    return numbers


@builtin
def multiple_of(input: tensor, values: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Promise that the first of each run of contiguous elements is a multiple of `values`.

    >>> evaluate("tl.multiple_of(x, 4)", x=[4, 8])
    array([4, 8], dtype=int32)
    """
    return _semantic.multiple_of(_input(input, "multiple_of"), _values(values))


@builtin
def max_contiguous(input: tensor, values: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Promise that the first `values` elements of each such group are contiguous.

    >>> evaluate("tl.max_contiguous(x, 2)", x=[4, 5])
    array([4, 5], dtype=int32)
    """
    return _semantic.max_contiguous(_input(input, "max_contiguous"), _values(values))


@builtin
def max_constancy(input: tensor, values: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Promise that the first `values` elements of each such group are equal.

    >>> evaluate("tl.max_constancy(x, 2)", x=[4, 4])
    array([4, 4], dtype=int32)
    """
    return _semantic.max_constancy(_input(input, "max_constancy"), _values(values))


@builtin
def device_print(prefix: Any, *args: Any, hex: Any = False, _semantic: TritonSemantic = GIVEN) -> None:
    """Print values when the kernel runs, one line for each element, after the program's place and `prefix`.

    >>> evaluate("tl.device_print('n is', n)", n=3)
    pid (0, 0, 0) idx () n is: 3
    """
    text = unwrap(prefix)
    if not isinstance(text, str):
        raise hinted(
            TypeError(f"the first argument of device_print must be a string known when compiling, got {text}"),
            'say first what it is: tl.device_print("x", x)',
        )
    if not all(character in string.printable for character in text):
        raise ValueError(f"the text of device_print must be printable ASCII, got {text!r}")
    _semantic.device_print(text, [_semantic.to_tensor(a) for a in args], known_flag(hex, "hex"))


@builtin
def device_assert(cond: Any, msg: Any = "", mask: Any = None, _semantic: TritonSemantic = GIVEN) -> None:
    """With the option `debug`, end the launch with an error where `cond` is false (and `mask` true).

    >>> evaluate("tl.device_assert(x > 0); x", x=[1, 2])
    array([1, 2], dtype=int32)
    """
    condition = _semantic.to_tensor(cond)
    mask = unwrap(mask)
    mask = None if mask is None else _semantic.to_tensor(mask)
    if not _semantic.options.debug:
        return
    if not condition.dtype.is_int1():
        condition = _semantic.not_equal(condition, 0)
    _semantic.device_assert(condition, str(unwrap(msg)), mask)


@builtin
def expect_zero(x: Any, mask: Any, _semantic: TritonSemantic = GIVEN) -> Value:
    """Return `x`, and promise that it is zero where `mask` is true; with the option `debug` that is an assertion.

    >>> evaluate("tl.expect_zero(x, x > 1)", x=[0, 1])
    array([0, 1], dtype=int32)
    """
    if _semantic.options.debug:
        value, flags = _semantic.to_tensor(unwrap(x)), _semantic.to_tensor(unwrap(mask))
        zero = _semantic.equal(value, _semantic.to_tensor(0))
        _semantic.device_assert(zero, "expect_zero expected x == 0 where mask is true", flags)
    return x  # type: ignore[no-any-return]
