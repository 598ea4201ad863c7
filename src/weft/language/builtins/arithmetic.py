"""Arithmetic helpers, choice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.ir import PropagateNan

from .. import dtypes as dt
from ..constants import constexpr, known_flag, unwrap
from ..protocol import GIVEN, base_value, builtin
from ..tensors import block_shape, tensor

if TYPE_CHECKING:
    from ..semantic import TritonSemantic

__all__ = [
    "add",
    "clamp",
    "maximum",
    "minimum",
    "mul",
    "sub",
    "where",
]

_NOTHING = object()


@builtin
def add(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: TritonSemantic = GIVEN) -> tensor:
    """`x + y`; `sanitize_overflow=False` leaves out the check that debugging adds.

    >>> evaluate("tl.add(x, 10)", x=[1, 2])
    array([11, 12], dtype=int32)
    """
    return _semantic.add(unwrap(x), unwrap(y), known_flag(sanitize_overflow, "sanitize_overflow"))


@builtin
def sub(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: TritonSemantic = GIVEN) -> tensor:
    """`x - y`; `sanitize_overflow=False` leaves out the check that debugging adds.

    >>> evaluate("tl.sub(x, 10)", x=[1, 2])
    array([-9, -8], dtype=int32)
    """
    return _semantic.sub(unwrap(x), unwrap(y), known_flag(sanitize_overflow, "sanitize_overflow"))


@builtin
def mul(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: TritonSemantic = GIVEN) -> tensor:
    """`x * y`; `sanitize_overflow=False` leaves out the check that debugging adds.

    >>> evaluate("tl.mul(x, 10)", x=[1, 2])
    array([10, 20], dtype=int32)
    """
    return _semantic.mul(unwrap(x), unwrap(y), known_flag(sanitize_overflow, "sanitize_overflow"))


def promote_bfloat16_to_float32(t: Any, _semantic: TritonSemantic = GIVEN) -> Any:
    """bfloat16 as float32; anything else as it is."""
    return _semantic.cast(t, dt.float32) if t.type.scalar.is_bf16() else t


def _operand(x: Any, semantic: TritonSemantic) -> Any:
    return promote_bfloat16_to_float32(semantic.to_tensor(x), _semantic=semantic)


@builtin
def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The smaller of two values, element by element; bfloat16 is computed in float32.

    If one is NaN, the result is the other, unless `propagate_nan` is `PropagateNan.ALL`.

    >>> evaluate("tl.minimum(x, 2)", x=[1, 3])
    array([1, 2], dtype=int32)
    """
    return _semantic.minimum(_operand(x, _semantic), _operand(y, _semantic), unwrap(propagate_nan))


@builtin
def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The larger of two values, element by element; bfloat16 is computed in float32.

    If one is NaN, the result is the other, unless `propagate_nan` is `PropagateNan.ALL`.

    >>> evaluate("tl.maximum(x, 2)", x=[1, 3])
    array([2, 3], dtype=int32)
    """
    return _semantic.maximum(_operand(x, _semantic), _operand(y, _semantic), unwrap(propagate_nan))


@builtin
def clamp(
    x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """Limit a float to a range, whose bounds must be in order and not NaN; bfloat16 is computed in float32.

    >>> evaluate("tl.clamp(x, -1.0, 1.0)", x=[-3.0, 0.5, 2.0, 1.0])
    array([-1. ,  0.5,  1. ,  1. ], dtype=float32)
    """
    x, low, high = (_operand(v, _semantic) for v in (x, min, max))
    return _semantic.clamp(x, low, high, unwrap(propagate_nan))


def _fold_extremum(args: tuple[Any, ...], propagate_nan: Any, semantic: Any, larger: bool) -> Any:
    """Python's `min` and `max` in kernels: folded where known, else `minimum` and `maximum` of scalars."""
    name = "max" if larger else "min"
    values = [unwrap(a) for a in args]
    if len(values) == 1 and hasattr(values[0], "__iter__"):
        values = [unwrap(v) for v in values[0]]
    if len(values) < 2:
        raise ValueError(f"min/max need two values or more, got {len(values)}")
    if not any(isinstance(v, base_value) for v in values):
        for v in values:
            if isinstance(v, float) and (math.isnan(v) or (v == 0 and math.copysign(1, v) < 0)):
                raise ValueError(f"{name} of constexprs does not take {v}: use tl.{name}imum")
        return constexpr((max if larger else min)(values))
    if any(isinstance(v, tensor) and block_shape(v) for v in values):
        semantic.warn(f"builtin {name} on non-scalar tensor values is deprecated; use tl.{name}imum instead")
    nan = PropagateNan.NONE if propagate_nan is _NOTHING else unwrap(propagate_nan)
    function = maximum if larger else minimum
    result = values[0]
    for value in values[1:]:
        result = function(result, value, propagate_nan=nan, _semantic=semantic)
    return result


@builtin
def builtin_max(*args: Any, propagate_nan: Any = _NOTHING, _semantic: TritonSemantic = GIVEN) -> Any:
    """Python's `max` in kernels: of constexprs a constexpr, of scalars `maximum`."""
    return _fold_extremum(args, propagate_nan, _semantic, larger=True)


@builtin
def builtin_min(*args: Any, propagate_nan: Any = _NOTHING, _semantic: TritonSemantic = GIVEN) -> Any:
    """Python's `min` in kernels: of constexprs a constexpr, of scalars `minimum`."""
    return _fold_extremum(args, propagate_nan, _semantic, larger=False)


@builtin
def where(condition: Any, x: Any, y: Any, _semantic: TritonSemantic = GIVEN) -> tensor:
    """`x` where the condition holds, else `y`; both are always computed, in a common type.

    >>> evaluate("tl.where(x > 2, x, 0)", x=[1, 2, 3, 4])
    array([0, 0, 3, 4], dtype=int32)
    """
    return _semantic.where(_semantic.to_tensor(condition), unwrap(x), unwrap(y))
