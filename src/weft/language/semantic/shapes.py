"""Making tiles and changing their shape; nothing is computed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ir
from weft.base import hinted
from weft.ir import tt

from .. import dtypes as dt
from ..constants import constexpr, shown
from ..dtypes import block_of, check_shape, dtype
from ..tensors import tensor
from .base import SemanticBase, block_shape, shape_text


class Shapes(SemanticBase):
    """Program ids, ranges, constants; reshape, permute, join and their kind."""

    def program_id(self, axis: int) -> tensor:
        """Which program this is, along an axis of the grid."""
        return self._of_grid(tt.GetProgramIdOp, "program_id", axis)

    def num_programs(self, axis: int) -> tensor:
        """How many programs there are, along an axis of the grid."""
        return self._of_grid(tt.GetNumProgramsOp, "num_programs", axis)

    def _of_grid(self, op: Any, name: str, axis: int) -> tensor:
        if isinstance(axis, tensor):
            raise ValueError(f"the axis of {name} must be of type tl.constexpr")
        if axis not in (0, 1, 2) or isinstance(axis, float):
            raise ValueError(f"{name} axis must be 0, 1, or 2 but got {axis}")
        return self._value(op, (), dt.int32, {"axis": ir.i32_attr(axis)})

    def arange(self, start: int, end: int, *, ret_ty: dtype | None = None) -> tensor:
        """The integers from `start` up to, not including, `end`."""
        for bound in (start, end):
            if isinstance(bound, tensor):
                raise ValueError("arange's arguments must be of type tl.constexpr")
            if not isinstance(bound, int):  # True is 1, as it is in Python and in Triton
                kind = type(bound).__name__
                raise ValueError(f"arange's arguments must be integers, got {shown(bound)} of type {kind}")
        start, end = int(start), int(end)
        if not (-(2**31) <= start < 2**31 and -(2**31) <= end < 2**31 + 1):
            raise ValueError(f"arange must fit in int32, got {start} to {end}")
        if end <= start:
            raise ValueError(f"arange's end argument must be greater than the start argument, got {start} to {end}")
        count = end - start
        if count & (count - 1):
            low = 1 << (count.bit_length() - 1)
            raise hinted(
                ValueError("arange's range must be a power of 2"),
                f"it is {count}; the nearest are {low} and {2 * low}: mask the rest",
            )
        type_ = ret_ty if ret_ty is not None else block_of(dt.int32, (count,))
        if end == 2**31:
            raise ValueError(f"arange must fit in int32, got {start} to {end}")
        return self._value(tt.MakeRangeOp, (), type_, {"start": ir.i32_attr(start), "end": ir.i32_attr(end)})

    def full(self, shape: Sequence[int], value: Any, dtype: dtype) -> tensor:
        """A tile of one value."""
        shape = tuple(shape)
        check_shape(shape)
        if isinstance(value, tensor):
            if value.numel.value != 1:
                raise ValueError(f"only accepts size-1 tensor, got a tensor of shape {shape_text(block_shape(value))}")
            if dtype is not None:
                value = self.cast(value, dtype)
            return self.splat(self.unsplat(value), shape)
        self._check_fits(value, dtype)
        return self._constant(value, block_of(dtype, shape) if shape else dtype)

    def _check_fits(self, value: Any, dtype: dtype) -> None:
        """A number with which a tile of this type can be filled."""
        self.check_number(value, dtype)
        if dtype.is_int_unsigned() and not dtype.is_bool() and value < 0:
            raise TypeError(f"the value {value} is negative and does not fit the unsigned type {dtype}")

    @staticmethod
    def _reshaped(input: tensor, dst_shape: Sequence[int]) -> tuple[int, ...]:
        """The new shape, which must have as many elements."""
        shape = tuple(dst_shape)
        numel = check_shape(shape)
        have = input.numel.value
        if have != numel:
            raise ValueError(
                "reshape() cannot change total number of elements in tensor: "
                f"{shape_text(block_shape(input))} has {have}, {shape_text(shape)} has {numel}"
            )
        return shape

    def reshape(self, input: tensor, dst_shape: Sequence[int], can_reorder: bool) -> tensor:
        """The same elements in another shape, row-major."""
        shape = self._reshaped(input, dst_shape)
        if not shape:
            return self.unsplat(input)
        result = block_of(input.type.scalar, shape)
        if not block_shape(input):
            return self.splat(input, shape)
        properties = {"allow_reorder": ir.unit_attr()} if can_reorder else {}
        return self._value(tt.ReshapeOp, (input.handle,), result, properties)

    def expand_dims(self, input: tensor, axis: int) -> tensor:
        """A new axis of size 1; a scalar becomes a tile of one element."""
        if not block_shape(input):
            return self.splat(input, (1,))
        return self._expand(input, axis)

    def cat(self, lhs: tensor, rhs: tensor, can_reorder: bool, dim: int = 0) -> tensor:
        """Two tiles of one shape end to end along a dimension, in order.

        Triton 3.6 knows only tiles of one dimension whose elements may be reordered (`tt.cat`).
        """
        left, right = block_shape(lhs), block_shape(rhs)
        rank = len(left)
        if rank != len(right):
            raise AssertionError(f"tensors must have the same rank, got {rank} and {len(right)}")
        if not rank:
            raise ValueError("cat needs two tensors, got two scalars: use join")
        if not -rank <= dim < rank:
            raise ValueError(f"dim must be in -{rank}..{rank - 1} for tensors of {rank} dimensions, got {dim}")
        dim %= rank
        if left != right:
            raise AssertionError(
                f"tensor dims must match except in the concat dimension {dim}, got {shape_text(left)} and "
                f"{shape_text(right)}"
                if any(a != b for i, (a, b) in enumerate(zip(left, right, strict=True)) if i != dim)
                else f"cat needs two tensors of one shape, got {shape_text(left)} and {shape_text(right)}: what comes "
                "out has a power of 2 of elements"
            )
        if lhs.type.scalar != rhs.type.scalar:
            raise TypeError(f"cat needs one element type, got {lhs.type.scalar} and {rhs.type.scalar}")
        if can_reorder and rank == 1:
            return self._value(tt.CatOp, (lhs.handle, rhs.handle), block_of(lhs.type.scalar, (2 * left[0],)))
        order = [*range(dim), rank, *range(dim, rank)]
        merged = [size * (1 + (i == dim)) for i, size in enumerate(left)]
        return self.reshape(self.permute(self.join(lhs, rhs), order), merged, False)

    def join(self, a: tensor, b: tensor) -> tensor:
        """Two tiles side by side in a new last axis of size 2."""
        a, b = self.broadcast_impl_value(a, b)
        if a.type.scalar != b.type.scalar:
            raise TypeError(f"join needs one element type, got {a.type.scalar} and {b.type.scalar}: cast one of them")
        was_scalar = not block_shape(a)
        if was_scalar:
            a, b = self.splat(a, (1,)), self.splat(b, (1,))
        joined = self._value(tt.JoinOp, (a.handle, b.handle), block_of(a.type.scalar, (*block_shape(a), 2)))
        return self.reshape(joined, (2,), can_reorder=False) if was_scalar else joined

    def split(self, a: tensor) -> tuple[tensor, tensor]:
        """The two halves along a last axis of size 2."""
        shape = block_shape(a)
        if not shape or shape[-1] != 2:
            raise ValueError(f"split needs a last dimension of size 2, got shape {shape_text(shape)}")
        was_pair = len(shape) == 1
        if was_pair:
            a = self._expand(a, 0)
            shape = block_shape(a)
        half = block_of(a.type.scalar, shape[:-1])
        op = self.builder.create(tt.SplitOp, (a.handle,), (half.to_ir(), half.to_ir()))
        left, right = (tensor(r, half) for r in op.results)
        return (self.unsplat(left), self.unsplat(right)) if was_pair else (left, right)

    @staticmethod
    def _order_of_axes(input: tensor, dims: Sequence[Any]) -> tuple[int, ...]:
        """A permutation of the axes of a tile."""
        shape = block_shape(input)
        order = tuple(d.value if isinstance(d, constexpr) else d for d in dims)
        if not shape:
            raise ValueError(f"permute needs a tensor, got the scalar {input}")
        if len(order) != len(shape):
            raise ValueError(
                "permute dims must have the same length as input shape: "
                f"got {list(order)} for shape {shape_text(shape)}"
            )
        if sorted(order) != list(range(len(shape))):
            raise ValueError(f"permute dims must be a permutation of 0, 1, ..., n-1, but were {list(order)}")
        return order

    def permute(self, input: tensor, dims: Sequence[Any]) -> tensor:
        """Axes in another order."""
        order = self._order_of_axes(input, dims)
        shape = block_shape(input)
        result = block_of(input.type.scalar, tuple(shape[d] for d in order))
        return self._value(tt.TransOp, (input.handle,), result, {"order": ir.i32_array(order)})
