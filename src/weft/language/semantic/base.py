"""The ground of the semantic: the builder, constants, promotion, broadcasting.

Promotion of two tensors, first rule that fits: a float64 makes float64; float32 makes float32; float16 makes float16
(float32 for `/` and `%`); bfloat16 with itself stays (float32 for `/` and `%`), with anything else makes float32; equal
fp8 stay, different ones make float16; of two integers the wider wins, of equally wide ones the unsigned.
A Python number takes the tensor's type, unless it is of a higher kind (boolean < integer < float).

Where a number meets a tile, the constant tile is made at once, so that no dead scalars are left in the IR.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from weft import ir
from weft.base import CompileOptions, hinted, warn_at
from weft.ir import tt

from .. import dtypes as dt, tuples
from ..constants import constexpr, shown
from ..dtypes import block_of, block_type, dtype
from ..tensors import block_shape, shape_text, tensor

__all__ = ["IncompatibleTypeErrorImpl", "SemanticBase", "block_shape", "shape_text"]

_SMALLEST_NORMAL_FLOAT32 = 2.0**-126
_LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127


class IncompatibleTypeErrorImpl(Exception):
    """Two types that an operation cannot take together."""

    def __init__(self, type_a: Any, type_b: Any) -> None:
        self.type_a = type_a
        self.type_b = type_b
        self.message = f"invalid operands of type {type_a!r} and {type_b!r}"
        super().__init__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.type_a, self.type_b)


class SemanticBase:
    """What all parts of the semantic share."""

    def __init__(self, builder: ir.Builder, options: CompileOptions | None = None, target: str = "cpu") -> None:
        self.builder = builder
        self.options = options if options is not None else CompileOptions()
        self.target = target
        self.unrolled = 0
        """Bodies unrolled so far, against `options.unroll_budget`."""

    def warn(self, text: str) -> None:
        """Warn of what is being traced, at its place in the kernel."""
        warn_at(self.builder.current_span(), text)

    def unroll(self, text: str, count: int, hint: str) -> None:
        """Note that `count` bodies are about to be made: iterations of a loop, rounds of a generator, calls.

        One budget covers them all, so that a kernel of a few lines compiles in reasonable time or says why not.
        """
        budget = self.options.unroll_budget
        if self.unrolled + count > budget:
            error = ValueError(f"{text}, {self.unrolled} were unrolled before, and the limit of one kernel is {budget}")
            error.add_note(hint)
            raise error
        self.unrolled += count

    # -- making values -----------------------------------------------------------------------------------------

    def _value(
        self,
        op: type[Operation],
        operands: Sequence[SSAValue],
        type: dtype,
        properties: Mapping[str, Attribute] | None = None,
    ) -> tensor:
        """An operation with one result, as a tensor of `type`."""
        op_made = self.builder.create(op, operands, (type.to_ir(),), properties or {})
        return tensor(op_made.results[0], type)

    def _same(self, op: type[Operation], value: tensor, *others: tensor) -> tensor:
        """An operation whose result has the type of its first operand."""
        handle = value.handle
        result = self.builder.create(op, (handle, *[o.handle for o in others]), (handle.type,))
        return tensor(result.results[0], value.type)

    def _constant(self, value: int | float | bool, type: dtype) -> tensor:
        """A constant of a scalar or tile type; integers wrap, floats round to the type."""
        scalar = type.scalar
        if scalar.is_fp8e4b15():
            # Its IR type is an integer that only casts understand.
            base = self._constant(value, type.with_element_ty(dt.float32) if type.is_block() else dt.float32)
            return self.cast(base, type)
        if not scalar.is_int():
            value = _as_float(value, scalar)
        elif not isinstance(value, bool):
            value = int(value) & (2**scalar.int_bitwidth - 1)
        return tensor(self.builder.constant(value, type.to_ir()), type)

    @staticmethod
    def check_type_of_numbers(type: Any) -> None:
        """TypeError unless it is an element type that numbers have: no pointer, and no tile."""
        if not isinstance(type, dtype) or type.is_block() or not (type.is_int() or type.is_floating()):
            raise TypeError(f"dtype must be an element type of numbers, got {type}")

    def check_number(self, value: Any, dtype: dtype) -> None:
        """ValueError or TypeError unless a type is given in which a number can be written."""
        if dtype is None:
            raise ValueError("dtype must be specified when value is not a tensor")
        self.check_type_of_numbers(dtype)
        if isinstance(value, float) and value != 0 and dtype.is_int():
            raise TypeError(f"the value {value} is a float and does not fit the integer type {dtype}: cast it first")

    def scalar_constant(self, value: Any, dtype: dtype) -> tensor:
        """A scalar constant of a type that must be given."""
        self.check_number(value, dtype)
        return self._constant(value, dtype)

    def make_scalar(self, value: Any, dtype: dtype) -> tensor:
        """A scalar of `dtype` from a number or a tensor of one element."""
        if isinstance(value, tensor):
            if value.numel.value != 1:
                raise ValueError(f"only accepts size-1 tensor, got a tensor of shape {shape_text(block_shape(value))}")
            return self.cast(value, dtype)
        return self.scalar_constant(value, dtype)

    def to_tensor(self, x: Any, check_type: bool = True) -> Any:
        """A Python number as a scalar tensor of the smallest usual type that holds it; tensors as they are."""
        if isinstance(x, tensor):
            return x
        if isinstance(x, constexpr):
            x = x.value
            if isinstance(x, tensor):
                return x
        if isinstance(x, bool):
            return self._constant(x, dt.int1)
        if isinstance(x, numbers.Number):
            return self._constant(x, self.type_of_number(x))  # type: ignore[arg-type]
        if check_type:
            raise no_tensor(x)
        return x

    @staticmethod
    def type_of_number(x: Any) -> dtype:
        """The type that a Python number gets where nothing else says."""
        if isinstance(x, bool):
            return dt.int1
        if isinstance(x, int):
            if -(2**31) <= x < 2**31:
                return dt.int32
            if 2**31 <= x < 2**32:
                return dt.uint32
            if -(2**63) <= x < 2**63:
                return dt.int64
            if 2**63 <= x < 2**64:
                return dt.uint64
            raise ValueError(f"Nonrepresentable integer {x}.")
        if isinstance(x, float) or hasattr(x, "__float__"):
            size = abs(float(x))
            fits = size == 0 or math.isinf(size) or math.isnan(size)
            return dt.float32 if fits or _SMALLEST_NORMAL_FLOAT32 <= size <= _LARGEST_FLOAT32 else dt.float64
        raise no_tensor(x)

    # -- promotion ---------------------------------------------------------------------------------------------

    def integer_promote_impl(self, a_ty: dtype, b_ty: dtype) -> dtype:
        """The common type of two integer types."""
        a_rank, b_rank = a_ty.int_bitwidth, b_ty.int_bitwidth
        if a_ty.int_signedness == b_ty.int_signedness:
            return a_ty if a_rank > b_rank else b_ty
        if a_ty.is_int_unsigned():
            return a_ty if a_rank >= b_rank else b_ty
        return b_ty if b_rank >= a_rank else a_ty

    def computation_type_impl(
        self, a_ty: dtype, a_is_scalar: bool, b_ty: dtype, b_is_scalar: bool, div_or_mod: bool
    ) -> dtype:
        """The type in which an operation on `a_ty` and `b_ty` is done; `is_scalar` marks Python numbers."""
        if a_is_scalar != b_is_scalar:
            scalar_ty, tensor_ty = (a_ty, b_ty) if a_is_scalar else (b_ty, a_ty)
            if scalar_ty.kind().value <= tensor_ty.kind().value:
                if div_or_mod and (tensor_ty.is_fp16() or tensor_ty.is_bf16() or tensor_ty.is_fp8()):
                    return dt.float32
                return tensor_ty
        if a_ty.is_fp64() or b_ty.is_fp64():
            return dt.float64
        if a_ty.is_fp32() or b_ty.is_fp32():
            return dt.float32
        if a_ty.is_fp16() or b_ty.is_fp16():
            return dt.float32 if div_or_mod else dt.float16
        if a_ty.is_bf16() and b_ty.is_bf16():
            return dt.float32 if div_or_mod else dt.bfloat16
        if a_ty.is_bf16() or b_ty.is_bf16():
            return dt.float32
        if a_ty.is_fp8() and b_ty.is_fp8():
            return dt.float32 if div_or_mod else a_ty if a_ty == b_ty else dt.float16
        if not a_ty.is_int() or not b_ty.is_int():
            raise TypeError(f"unexpected type {a_ty} and {b_ty}")
        if div_or_mod and a_ty.int_signedness != b_ty.int_signedness:
            raise TypeError(
                f"Cannot use /, //, or % with {a_ty} and {b_ty} because they have different signedness; "
                "this is unlikely to result in a useful answer. Cast them to the same signedness."
            )
        return self.integer_promote_impl(a_ty, b_ty)

    def check_ptr_type_impl(self, type_a: dtype, type_b: dtype, allow_ptr_a: bool) -> None:
        """Refuse pointers where they make no sense: unless allowed, with floats, with pointers of another type."""
        alien = type_b.is_floating() or (type_b.is_ptr() and type_a != type_b)
        if type_a.is_ptr() and (alien or not allow_ptr_a):
            raise IncompatibleTypeErrorImpl(type_a, type_b)

    def binary_op_type_checking_impl(
        self,
        lhs: Any,
        rhs: Any,
        allow_lhs_ptr: bool = False,
        allow_rhs_ptr: bool = False,
        arithmetic_check: bool = True,
        div_or_mod: bool = False,
        shape: Sequence[int] = (),
    ) -> tuple[tensor, tensor]:
        """Both operands in one type and one shape; `shape` is one that the result will be broadcast to anyway."""
        lhs_number, rhs_number = _number_of(lhs), _number_of(rhs)
        lhs_scalar = self.type_of_number(lhs_number) if lhs_number is not None else lhs.type.scalar
        rhs_scalar = self.type_of_number(rhs_number) if rhs_number is not None else rhs.type.scalar
        self.check_ptr_type_impl(lhs_scalar, rhs_scalar, allow_lhs_ptr)
        self.check_ptr_type_impl(rhs_scalar, lhs_scalar, allow_rhs_ptr)
        lhs_type, rhs_type = lhs_scalar, rhs_scalar
        if arithmetic_check and not lhs_scalar.is_ptr() and not rhs_scalar.is_ptr():
            result = self.computation_type_impl(
                lhs_scalar, lhs_number is not None, rhs_scalar, rhs_number is not None, div_or_mod
            )
            _check_number(lhs_number, result)
            _check_number(rhs_number, result)
            lhs_type = rhs_type = result
            if lhs_number is None:
                lhs = self.cast(lhs, result)
            if rhs_number is None:
                rhs = self.cast(rhs, result)
        if lhs_number is not None or rhs_number is not None:
            common = self.broadcast_shapes(
                () if lhs_number is not None else block_shape(lhs), () if rhs_number is not None else block_shape(rhs)
            )
            common = self.broadcast_shapes(common, tuple(shape))
            if lhs_number is not None:
                lhs = self._constant(lhs_number, self._type_beside(lhs_type, common, rhs))
            if rhs_number is not None:
                rhs = self._constant(rhs_number, self._type_beside(rhs_type, common, lhs))
        return self.broadcast_impl_value(lhs, rhs)

    def _type_beside(self, scalar: dtype, shape: tuple[int, ...], other: Any) -> dtype:
        """The type of a number in a shape that it has because of `other`, which it meets in an operation."""
        return block_of(scalar, shape) if shape else scalar

    # -- shapes that must agree --------------------------------------------------------------------------------

    @staticmethod
    def broadcast_shapes(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
        """The shape two tiles have in common: aligned at the last axis, size 1 gives way."""
        if left == right:
            return left
        rank = max(len(left), len(right))
        left = (1,) * (rank - len(left)) + left
        right = (1,) * (rank - len(right)) + right
        shape = []
        for axis, (a, b) in enumerate(zip(left, right, strict=True)):
            if a != b and a != 1 and b != 1:
                raise hinted(
                    ValueError(f"Cannot make_shape_compatible: incompatible dimensions at index {axis}: {a} and {b}"),
                    f"the shapes are {shape_text(left)} and {shape_text(right)}; sizes must be equal or 1: "
                    "add an axis of size 1 with x[:, None] or x[None, :]",
                )
            shape.append(b if a == 1 else a)
        return tuple(shape)

    def splat(self, value: tensor, shape: Sequence[int]) -> tensor:
        """A tile of one scalar; of a constant, a constant tile."""
        if isinstance(value.type, block_type):
            raise ValueError(f"Cannot splat a block tensor of shape {shape_text(value.type.shape)}: only a scalar")
        if len(shape) == 0:
            return value
        if value.type.is_ptr() and value.type.element_ty.is_block():  # type: ignore[attr-defined]
            raise TypeError(f"a block pointer cannot be repeated, got {value.type}")
        result = block_of(value.type, tuple(shape))
        owner = value.handle.owner
        if type(owner) is arith.ConstantOp:
            constant = ir.splat_value(owner.properties["value"])
            if constant is not None:
                return tensor(self.builder.constant(constant, result.to_ir()), result)
        return self._value(tt.SplatOp, (value.handle,), result)

    def unsplat(self, value: tensor) -> tensor:
        """The one element of a tile that has one."""
        if not isinstance(value.type, block_type):
            return value
        if value.type.numel != 1:
            raise ValueError(f"can only unsplat single-element tensors, got shape {shape_text(value.type.shape)}")
        return self._value(tt.UnsplatOp, (value.handle,), value.type.scalar)

    def broadcast_impl_shape(self, input: tensor, shape: Sequence[int]) -> tensor:
        """One tile repeated to a shape of the same rank; a scalar is splat."""
        shape = tuple(shape)
        current = block_shape(input)
        if not current:
            return self.splat(input, shape)
        if len(current) != len(shape):
            raise ValueError(f"Cannot broadcast, rank mismatch: {shape_text(current)}, {shape_text(shape)}")
        if current == shape:
            return input
        for axis, (wanted, have) in enumerate(zip(shape, current, strict=True)):
            if wanted != have and have != 1:
                raise ValueError(
                    f"Cannot broadcast, the expanded size of the tensor ({wanted}) must match the existing size "
                    f"({have}) at non-singleton dimension {axis}: {shape_text(current)}, {shape_text(shape)}"
                )
        return self._repeated(input, shape)

    def _repeated(self, input: tensor, shape: tuple[int, ...]) -> tensor:
        return self._value(tt.BroadcastOp, (input.handle,), block_of(input.type.scalar, shape))

    def broadcast_to_tile(self, value: tensor, tile: tensor) -> tensor:
        """A tile or a scalar in the shape of another tile."""
        return self.broadcast_impl_shape(value, block_shape(tile))

    def broadcast_impl_value(self, lhs: tensor, rhs: tensor) -> tuple[tensor, tensor]:
        """Both tiles in their common shape."""
        left, right = block_shape(lhs), block_shape(rhs)
        if left == right:
            return lhs, rhs
        if not left:
            return self.splat(lhs, right), rhs
        if not right:
            return lhs, self.splat(rhs, left)
        common = self.broadcast_shapes(left, right)
        return self._broadcast(lhs, common), self._broadcast(rhs, common)

    def _broadcast(self, value: tensor, common: tuple[int, ...]) -> tensor:
        """A tile in a shape that is known to fit: new leading axes, then repeated."""
        for _ in range(len(common) - len(block_shape(value))):
            value = self._expand(value, 0)
        return self.broadcast_impl_shape(value, common)

    def _expand(self, value: tensor, axis: int) -> tensor:
        """A new axis of size 1."""
        shape = list(block_shape(value))
        shape.insert(axis, 1)
        result = block_of(value.type.scalar, tuple(shape))
        return self._value(tt.ExpandDimsOp, (value.handle,), result, {"axis": ir.i32_attr(axis)})

    def broadcast_tensors(self, *inputs: tensor) -> list[tensor]:
        """All tiles in their common shape."""
        common: tuple[int, ...] = ()
        for value in inputs:
            common = self.broadcast_shapes(common, block_shape(value))
        if not common:
            return list(inputs)
        return [self._broadcast(v, common) if block_shape(v) else self.splat(v, common) for v in inputs]

    def _bool_like(self, v: tensor) -> dtype:
        """`int1` in the shape of `v`."""
        return v.type.with_element_ty(dt.int1)

    # Implemented by other parts of the semantic.

    def cast(self, input: tensor, dst_ty: dtype, fp_downcast_rounding: str | None = None) -> tensor:
        """See `casts`."""
        raise NotImplementedError

    def positions(self, input: tensor, axis: int) -> tensor:
        """See `collectives`."""
        raise NotImplementedError


def no_tensor(x: Any) -> TypeError:
    """The error for a value that is wanted as a tensor and is none."""
    if isinstance(x, (tuple, list, tuples.tuple)):
        return hinted(TypeError(f"cannot convert a tuple of {len(x)} to tensor"), "use its elements, one at a time")
    text = x if isinstance(x, str) else shown(x)
    text = text if len(text) < 100 else f"{text[:60]} ..."
    return TypeError(f"cannot convert {text} of type {type(x)} to tensor")


def _number_of(x: Any) -> Any:
    """The Python number that an operand is, or None for a tensor."""
    if isinstance(x, constexpr):
        x = x.value
    if isinstance(x, tensor):
        return None
    if isinstance(x, numbers.Number):
        return x
    raise no_tensor(x)


def _check_number(number: Any, type: dtype) -> None:
    """Refuse a Python number that the type of the operation cannot hold."""
    if number is None or not type.is_int():
        return
    if type.is_int_unsigned() and number < 0:
        raise ValueError(
            "Cannot perform a binary operation between an unsigned tensor and a negative scalar. "
            "Perform a explicit cast on one of them."
        )
    if not type.get_int_min_value() <= number <= type.get_int_max_value():
        raise ValueError(f"Scalar {number} is out of range for type {type}")


_LARGEST = {"fp16": 65520.0, "fp32": 3.4028235677973366e38}
"""From here on a number rounds to infinity."""


def _as_float(value: Any, type: dtype) -> float:
    """A number as Python's float, infinite where the type has nothing that large."""
    try:
        number = float(value)
    except OverflowError:
        return math.copysign(math.inf, value)
    limit = _LARGEST.get(type.name)
    if limit is not None and abs(number) >= limit:
        return math.copysign(math.inf, number)
    return number
