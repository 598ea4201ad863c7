"""`tensor`: a tile or a scalar in a kernel, as an SSA value of the IR and a type; its operators and methods.

The operators take the semantic from the frontend (`x + y` becomes `x.__add__(y, _semantic=s)`) and pass on to its
methods; those that are library functions too (`x.sum()`, `x.exp()`) are put here by `member`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from weft.base import warn_at

from . import dtypes
from .constants import constexpr, known_flag, unwrap
from .dtypes import block_type, dtype
from .protocol import base_value, builtin
from .tuples import slice as _slice_class, tuple as _tuple_class

F = TypeVar("F", bound=Callable[..., Any])


def add_type(left: Any, right: Any, semantic: Any) -> Any:
    """`x + y`; two tuples are joined."""
    if isinstance(left, _tuple_class) or isinstance(right, _tuple_class):
        raise TypeError("cannot add a tensor and a tuple")
    return semantic.add(unwrap(left), unwrap(right), sanitize_overflow=True)


def check_bit_width(value: Any, shift_value: Any, semantic: Any = None) -> None:
    """Warn about a shift by at least the width of what is shifted, where the distance is known."""
    if isinstance(value, tensor) and isinstance(shift_value, constexpr) and isinstance(shift_value.value, int):
        width = value.dtype.primitive_bitwidth
        if shift_value.value >= width:
            text = f"Value {shift_value.value} exceeds the maximum bitwidth ({width}) for type '{value.dtype}'. "
            warn_at(
                semantic.builder.current_span() if semantic is not None else None,
                text + "This may result in undefined behavior.",
            )


def _shifted_left(left: Any, right: Any, semantic: Any) -> Any:
    check_bit_width(left, right, semantic)
    return semantic.shl(unwrap(left), unwrap(right))


def _shifted_right(left: Any, right: Any, semantic: Any) -> Any:
    check_bit_width(left, right, semantic)
    signed = (left if isinstance(left, tensor) else right).dtype.is_int_signed()
    return (semantic.ashr if signed else semantic.lshr)(unwrap(left), unwrap(right))


def _operator(name: str, of: Callable[[Any, Any, Any], Any]) -> tuple[Any, Any]:
    """The methods of an operator: with a tensor on the left, and with one on the right; `of` has the semantic last."""

    def left(self: tensor, other: Any, _semantic: Any = None) -> Any:
        return of(self, other, _semantic)

    def right(self: tensor, other: Any, _semantic: Any = None) -> Any:
        return of(other, self, _semantic)

    left.__name__, right.__name__ = f"__{name}__", f"__r{name}__"
    return builtin(left), builtin(right)


if TYPE_CHECKING:
    from .tensor_methods import TensorMethods
else:
    TensorMethods = base_value


class tensor(TensorMethods):
    """A tile (or, with a scalar type, one number or pointer) that exists when the kernel runs.

    >>> evaluate("(x + 1).sum(axis=0)", x=[1, 2])
    5
    """

    __slots__ = ("handle", "type")

    def __init__(self, handle: Any, type: dtype) -> None:
        self.handle = handle
        self.type: dtype = type

    @property
    def shape(self) -> Any:
        """The shape as a tuple of constexprs; empty for a scalar."""
        type = self.type
        if not isinstance(type, block_type):
            return _NO_SHAPE
        if type._const_shape is None:
            type._const_shape = _tuple_class([constexpr(s) for s in type.shape])
        return type._const_shape

    @property
    def numel(self) -> constexpr:
        """The number of elements."""
        return constexpr(self.type.numel if isinstance(self.type, block_type) else 1)

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return self.type.scalar

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(unwrap(s)) for s in self.shape)}]"

    def __repr__(self) -> str:
        return f"tensor<{self}>"

    # Operators, and the same with the tensor on the right.

    if not TYPE_CHECKING:  # which are told by `tensor_methods`
        __add__, __radd__ = _operator("add", add_type)
        __sub__, __rsub__ = _operator("sub", lambda x, y, s: s.sub(unwrap(x), unwrap(y), sanitize_overflow=True))
        __mul__, __rmul__ = _operator("mul", lambda x, y, s: s.mul(unwrap(x), unwrap(y), sanitize_overflow=True))
        __truediv__, __rtruediv__ = _operator("truediv", lambda x, y, s: s.truediv(unwrap(x), unwrap(y)))
        __floordiv__, __rfloordiv__ = _operator("floordiv", lambda x, y, s: s.floordiv(unwrap(x), unwrap(y)))
        __mod__, __rmod__ = _operator("mod", lambda x, y, s: s.mod(unwrap(x), unwrap(y)))
        __and__, __rand__ = _operator("and", lambda x, y, s: s.and_(unwrap(x), unwrap(y)))
        __or__, __ror__ = _operator("or", lambda x, y, s: s.or_(unwrap(x), unwrap(y)))
        __xor__, __rxor__ = _operator("xor", lambda x, y, s: s.xor_(unwrap(x), unwrap(y)))
        __lshift__, __rlshift__ = _operator("lshift", _shifted_left)
        __rshift__, __rrshift__ = _operator("rshift", _shifted_right)
        __gt__, __rgt__ = _operator("gt", lambda x, y, s: s.greater_than(s.to_tensor(x), s.to_tensor(y)))
        __ge__, __rge__ = _operator("ge", lambda x, y, s: s.greater_equal(s.to_tensor(x), s.to_tensor(y)))
        __lt__, __rlt__ = _operator("lt", lambda x, y, s: s.less_than(s.to_tensor(x), s.to_tensor(y)))
        __le__, __rle__ = _operator("le", lambda x, y, s: s.less_equal(s.to_tensor(x), s.to_tensor(y)))
        __eq__, __req__ = _operator("eq", lambda x, y, s: s.equal(s.to_tensor(x), s.to_tensor(y)))
        __ne__, __rne__ = _operator("ne", lambda x, y, s: s.not_equal(s.to_tensor(x), s.to_tensor(y)))
        __hash__ = object.__hash__

        @builtin
        def __neg__(self, _semantic: Any = None) -> Any:
            return _semantic.minus(self)

        @builtin
        def __pos__(self, _semantic: Any = None) -> Any:
            return _semantic.plus(self)

        @builtin
        def __invert__(self, _semantic: Any = None) -> Any:
            return _semantic.invert(self)

        @builtin
        def logical_and(self, other: Any, _semantic: Any = None) -> Any:
            """`x and y`, for one-bit types."""
            return _semantic.logical_and(self, _semantic.to_tensor(other))

        @builtin
        def logical_or(self, other: Any, _semantic: Any = None) -> Any:
            """`x or y`, for one-bit types."""
            return _semantic.logical_or(self, _semantic.to_tensor(other))

        @builtin
        def __not__(self, _semantic: Any = None) -> Any:
            """`not x` (Python has no method for it; the frontend calls this one)."""
            return _semantic.not_(self)

    # Shape and type.

    if not TYPE_CHECKING:

        @builtin
        def __getitem__(self, slices: Any, _semantic: Any = None) -> Any:
            """`x[None, :]`: new axes of size one; nothing else can be selected."""
            if isinstance(slices, (type(None), constexpr, _slice_class)) or _is_python_slice(slices):
                slices = (slices,)
            if isinstance(slices, _tuple_class):
                slices = slices.values
            result = self
            if not isinstance(slices, (list, type(()))):
                slices = (slices,)
            for axis, item in enumerate(map(unwrap, slices)):
                if item is None:
                    if axis > len(block_shape(result)) and block_shape(result):
                        raise IndexError(f"too many indices: {result} has no axis for the `:` before None")
                    result = _semantic.expand_dims(result, axis)
                elif not _is_full_slice(item):
                    raise ValueError(
                        f"unsupported tensor index: {_index_text(item)} "
                        "(a tensor is indexed only with None and with full slices `:`; load elements by pointers)"
                    )
            return result

        @property
        def T(self) -> Any:
            """The transpose of a matrix (in kernels; here only so that the name is known)."""
            raise TypeError("`T` of a tensor exists only inside kernels: use trans(x)")

        @builtin
        def to(
            self, dtype: Any, fp_downcast_rounding: str | None = None, bitcast: bool = False, _semantic: Any = None
        ) -> Any:
            """The same as `cast`."""
            return cast_value(self, dtype, fp_downcast_rounding, bitcast, _semantic)


dtypes._tensor_class.append(tensor)
_NO_SHAPE = _tuple_class([])


def block_shape(value: tensor) -> tuple[int, ...]:
    """The shape as plain integers; `()` for a scalar."""
    type = value.type
    return type.shape if isinstance(type, block_type) else ()


def shape_text(shape: Sequence[int]) -> str:
    """A shape as messages show it: `[4, 8]`."""
    return "[" + ", ".join(str(s) for s in shape) + "]"


def cast_value(value: Any, target: Any, rounding: Any, bitcast: Any, semantic: Any) -> Any:
    """`cast`: a change of the element type; see the function of that name."""
    value = semantic.to_tensor(value)
    target, rounding, bitcast = unwrap(target), unwrap(rounding), known_flag(bitcast, "bitcast")
    if not isinstance(target, dtype):
        raise TypeError(f"cast needs an element type, got {target!r}")
    if isinstance(value.type, block_type) and not isinstance(target, block_type):
        target = value.type.with_element_ty(target)
    if bitcast:
        return semantic.bitcast(value, target)
    return semantic.cast(value, target, rounding)


def _is_python_slice(item: Any) -> bool:
    return isinstance(item, builtins.slice)


def _is_full_slice(item: Any) -> bool:
    if not (isinstance(item, _slice_class) or _is_python_slice(item)):
        return False
    return unwrap(item.start) is None and unwrap(item.stop) is None and unwrap(item.step) is None


def _index_text(item: Any) -> str:
    if isinstance(item, _slice_class) or _is_python_slice(item):
        ends = [unwrap(e) for e in (item.start, item.stop, item.step)]
        text = ":".join("" if e is None else str(e) for e in ends[:2])
        return text + (f":{ends[2]}" if ends[2] is not None else "")
    return str(unwrap(item))


def member(fn: F) -> F:
    """Make a library function also a method of `tensor`: `f(x, ...)` and `x.f(...)`."""
    setattr(tensor, fn.__name__, fn)
    return fn
