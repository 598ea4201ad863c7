"""Tiles with layouts: what the operations of the language mean where every tile has one.

Two tiles that meet must lie the same way; a tile in an AutoLayout takes the other's layout. A number that meets a tile
lies as the tile does. Shapes broadcast only between equal ranks. What an operation on shapes gives has the layout that
moves nothing (`weft.ir.gpu.naming`); `expand_dims` needs a SliceLayout, and gives its parent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ir
from weft.base import CompileOptions, hinted
from weft.ir import tt
from weft.ir.gpu import naming, ttg
from weft.language import dtypes as dt
from weft.language.constants import constexpr
from weft.language.dtypes import dtype
from weft.language.semantic import TritonSemantic, block_shape, shape_text
from weft.language.tensors import tensor
from weft.layouts import AutoLayout, DistributedLayout, DistributedLinearLayout, SliceLayout, plan_conversion
from weft.machines import DEFAULT

from ..mismatch import check_threads, layouts_differ, not_trivial
from ..types import described, distributed_type, layout_of, tile_type, unresolved


class Laid(TritonSemantic):
    """Operations on tiles in registers."""

    def __init__(self, builder: ir.Builder, options: CompileOptions | None = None, target: Any = DEFAULT.name) -> None:
        super().__init__(builder, options, target)
        self.warps = self.options.num_warps
        """The warps that run what is being traced: those of the kernel, or of a partition of it."""
        self.lanes: int = getattr(target, "warp_size", 32)

    # -- layouts that the author gives -------------------------------------------------------------------------

    def given_type(self, element: dtype, shape: Sequence[int], layout: Any) -> distributed_type:
        """The type of a tile in a layout that the kernel names; without one, in an AutoLayout."""
        if layout is None:
            layout = AutoLayout()
        if not isinstance(layout, DistributedLayout):
            raise hinted(
                TypeError(f"expected `layout` to be a layout of registers, got {described(layout)}"),
                "BlockedLayout, SliceLayout, DistributedLinearLayout, DotOperandLayout, NVMMADistributedLayout, "
                "AutoLayout or CoalescedLayout",
            )
        type = tile_type(element, tuple(shape), layout)
        check_threads(layout, type.shape, self.warps, self.lanes, self.options.num_ctas)
        return type

    def tile_layout(self, value: Any, subject: str) -> DistributedLayout:
        """The layout of a tile. Raises ValueError for anything else."""
        layout = layout_of(value.type) if isinstance(value, tensor) else None
        if layout is None:
            raise ValueError(f"{subject} needs a tensor with a layout, got {value}")
        return layout

    def _inferred(self, value: tensor, layout: DistributedLayout, shape: Sequence[int]) -> distributed_type:
        return tile_type(value.type.scalar, tuple(shape), layout)

    # -- making tiles ------------------------------------------------------------------------------------------

    def arange(self, start: int, end: int, layout: Any = None, *, ret_ty: dtype | None = None) -> tensor:
        """The integers from `start` up to, not including, `end`."""
        count = end - start if type(start) is int and type(end) is int else 0
        if ret_ty is None and count > 0 and not count & (count - 1):
            ret_ty = self.given_type(dt.int32, (count,), layout)
        return super().arange(start, end, ret_ty=ret_ty)

    def full(self, shape: Sequence[int], value: Any, dtype: dtype, layout: Any = None) -> tensor:
        """A tile of one value, in an AutoLayout if none is given."""
        if not shape:
            return super().full(shape, value, dtype)
        element = value.dtype if dtype is None and isinstance(value, tensor) else dtype
        if element is None:
            raise ValueError("dtype must be specified when value is not a tensor")
        result = self.given_type(element, shape, layout)
        if isinstance(value, tensor):
            return self.splat(self.make_scalar(self.unsplat(value), element), shape, result.layout)
        self._check_fits(value, element)
        return self._constant(value, result)

    def splat(self, value: tensor, shape: Sequence[int], layout: DistributedLayout | None = None) -> tensor:
        """A tile of one scalar; of a constant, a constant tile."""
        if block_shape(value):
            raise ValueError(f"Cannot splat a block tensor of shape {shape_text(block_shape(value))}: only a scalar")
        if not len(shape):
            return value
        result = self._inferred(value, layout if layout is not None else AutoLayout(), shape)
        constant = ir.splat_value(value.handle.owner.properties["value"]) if _is_constant(value) else None
        if constant is not None:
            return tensor(self.builder.constant(constant, result.to_ir()), result)
        return self._value(tt.SplatOp, (value.handle,), result)

    def _type_beside(self, scalar: dtype, shape: tuple[int, ...], other: Any) -> dtype:
        if isinstance(other, tensor) and block_shape(other):
            return other.type.with_element_ty(scalar)
        return scalar

    # -- tiles that meet ---------------------------------------------------------------------------------------

    def _repeated(self, input: tensor, shape: tuple[int, ...]) -> tensor:
        result = self._inferred(input, self.tile_layout(input, "broadcast"), shape)
        return self._value(tt.BroadcastOp, (input.handle,), result)

    def broadcast_to_tile(self, value: tensor, tile: tensor) -> tensor:
        """A tile or a scalar in the shape and the layout of another tile."""
        if not block_shape(value):
            return self.splat(value, block_shape(tile), layout_of(tile.type))
        value, other = self._same_layout(value, tile, "an operation on memory")
        del other
        return self.broadcast_impl_shape(value, block_shape(tile))

    def broadcast_impl_value(self, lhs: tensor, rhs: tensor) -> tuple[tensor, tensor]:
        """Both tiles in their common shape; they must lie the same way."""
        left, right = block_shape(lhs), block_shape(rhs)
        if not left and not right:
            return lhs, rhs
        if not left:
            return self.splat(lhs, right, layout_of(rhs.type)), rhs
        if not right:
            return lhs, self.splat(rhs, left, layout_of(lhs.type))
        if len(left) != len(right):
            raise hinted(
                ValueError(f"Cannot broadcast, rank mismatch: {shape_text(left)}, {shape_text(right)}"),
                "add an axis of size 1 with x[:, None] or x[None, :], where x is in a SliceLayout",
            )
        common = self.broadcast_shapes(left, right)
        lhs, rhs = self._same_layout(lhs, rhs, "broadcast")
        return self.broadcast_impl_shape(lhs, common), self.broadcast_impl_shape(rhs, common)

    def _same_layout(self, lhs: tensor, rhs: tensor, subject: str) -> tuple[tensor, tensor]:
        """Both tiles in one layout: an AutoLayout gives way; else LayoutError."""
        left, right = self.tile_layout(lhs, subject), self.tile_layout(rhs, subject)
        if isinstance(left, AutoLayout) and not isinstance(right, AutoLayout):
            return self.set_auto_layout(lhs, right), rhs
        if isinstance(right, AutoLayout) and not isinstance(left, AutoLayout):
            return lhs, self.set_auto_layout(rhs, left)
        if left != right:
            raise layouts_differ(subject, lhs.type, rhs.type)  # type: ignore[arg-type]
        return lhs, rhs

    def broadcast_tensors(self, *inputs: tensor) -> list[tensor]:
        """All tiles in their common shape and layout."""
        values = list(inputs)
        for _ in range(2):  # what was met first takes the shape of what was met last
            for i in range(1, len(values)):
                values[i - 1], values[i] = self.broadcast_impl_value(values[i - 1], values[i])
            values.reverse()
        return values

    # -- from layout to layout ---------------------------------------------------------------------------------

    def convert_layout(self, value: tensor, layout: Any, assert_trivial: bool = False) -> tensor:
        """The same tile in another layout; with `assert_trivial`, TypeError if anything would move."""
        source = self.tile_layout(value, "convert_layout")
        result = self.given_type(value.dtype, block_shape(value), layout)
        assert isinstance(value.type, distributed_type)
        if assert_trivial and source != result.layout:
            self._check_trivial(value.type, result.layout)
        return self._value(ttg.ConvertLayoutOp, (value.handle,), result)

    def _check_trivial(self, source: distributed_type, layout: DistributedLayout) -> None:
        if unresolved(source.layout) or unresolved(layout):
            raise not_trivial(source, layout, "one of them is not resolved yet")
        src, dst = source.layout.to_linear(source.shape), layout.to_linear(source.shape)
        if src != dst:
            plan = plan_conversion(src, dst, source.shape, source.element_ty.primitive_bitwidth)
            ways = {
                "shared": "shared memory",
                "registers": "an exchange of registers",
                "nothing": "copies in registers",
            }
            raise not_trivial(source, layout, f"it takes {ways.get(plan.kind, plan.kind)}")

    def set_auto_layout(self, value: tensor, layout: Any) -> tensor:
        """A tile in an AutoLayout, from now on in this layout."""
        source = self.tile_layout(value, "set_auto_layout")
        if not isinstance(source, AutoLayout):
            raise hinted(
                ValueError(f"set_auto_layout input must have an AutoLayout, it has {source!r}"),
                "for a tensor that has a layout: gl.convert_layout",
            )
        result = self.given_type(value.dtype, block_shape(value), layout)
        return self._value(ttg.SetAutoLayoutOp, (value.handle,), result)

    def to_linear_layout(self, layout: Any, shape: Sequence[int]) -> constexpr:
        """A layout as a DistributedLinearLayout (a layout of memory as a SharedLinearLayout) for a shape."""
        if isinstance(layout, (AutoLayout, DistributedLinearLayout)):
            return constexpr(layout)
        if isinstance(layout, DistributedLayout):
            return constexpr(naming.linear_name(layout.to_linear(shape)))
        return constexpr(naming.memory_linear_name(layout, shape))

    # -- shapes ------------------------------------------------------------------------------------------------

    def expand_dims(self, input: tensor, axis: int) -> tensor:
        """A new axis of size 1, of a tile that is a slice along it."""
        layout = self.tile_layout(input, "expand_dims")
        shape = list(block_shape(input))
        shape.insert(axis, 1)
        if not unresolved(layout):
            layout = naming.expanded(layout, axis)
        result = self._inferred(input, layout, shape)
        return self._value(tt.ExpandDimsOp, (input.handle,), result, {"axis": ir.i32_attr(axis)})

    def _expand(self, value: tensor, axis: int) -> tensor:
        return self.expand_dims(value, axis)

    def reshape(self, input: tensor, dst_shape: Sequence[int], can_reorder: bool) -> tensor:
        """The same elements in another shape, row-major, moving nothing."""
        if can_reorder:
            raise hinted(
                ValueError("can_reorder is not supported in gluon, because a layout fixes where each element is"),
                "leave out can_reorder=True; gl.reshape moves nothing",
            )
        shape, source_shape = self._reshaped(input, dst_shape), block_shape(input)
        if not source_shape or not shape:
            return super().reshape(input, shape, False)
        layout = self.tile_layout(input, "reshape")
        if not unresolved(layout):
            layout = naming.reshaped(layout, source_shape, shape)
        return self._value(tt.ReshapeOp, (input.handle,), self._inferred(input, layout, shape))

    def permute(self, input: tensor, dims: Sequence[Any]) -> tensor:
        """Axes in another order, moving nothing."""
        order = self._order_of_axes(input, dims)
        layout = self.tile_layout(input, "permute")
        shape = block_shape(input)
        if not unresolved(layout):
            layout = naming.transposed(layout, shape, order)
        result = self._inferred(input, layout, [shape[d] for d in order])
        return self._value(tt.TransOp, (input.handle,), result, {"order": ir.i32_array(order)})

    def join(self, a: tensor, b: tensor) -> tensor:
        """Two tiles side by side in a new last axis of size 2."""
        a, b = self.broadcast_impl_value(a, b)
        shape = block_shape(a)
        if not shape:
            raise ValueError("Cannot join scalars in gluon")
        if a.type.scalar != b.type.scalar:
            raise TypeError(f"join needs one element type, got {a.type.scalar} and {b.type.scalar}: cast one of them")
        layout = self.tile_layout(a, "join")
        if not unresolved(layout):
            layout = naming.joined(layout, shape)
        return self._value(tt.JoinOp, (a.handle, b.handle), self._inferred(a, layout, (*shape, 2)))

    def split(self, a: tensor) -> tuple[tensor, tensor]:
        """The two halves along a last axis of size 2."""
        shape = block_shape(a)
        if not shape or shape[-1] != 2:
            raise ValueError(f"split needs a last dimension of size 2, got shape {shape_text(shape)}")
        if len(shape) == 1:
            raise hinted(
                ValueError("Cannot split a tensor of rank 1 into scalars in gluon"),
                "gl.sum(gl.where(gl.arange(0, 2, layout) == i, x, 0)) is its element i",
            )
        layout = self.tile_layout(a, "split")
        if not unresolved(layout):
            layout = naming.split(layout, shape)
        half = self._inferred(a, layout, shape[:-1])
        op = self.builder.create(tt.SplitOp, (a.handle,), (half.to_ir(), half.to_ir()))
        left, right = (tensor(r, half) for r in op.results)
        return left, right

    def fp4_to_fp(self, src: tensor, elem_type: dtype, axis: int) -> tensor:
        """Two e2m1 numbers of each byte, side by side along an axis."""
        shape = block_shape(src)
        layout = self.tile_layout(src, "fp4_to_fp")
        if src.dtype not in (dt.uint8, dt.int8):
            raise TypeError(f"fp4_to_fp takes bytes of two numbers each, uint8, got {src.dtype}")
        if elem_type not in (dt.float16, dt.bfloat16):
            raise TypeError(f"fp4_to_fp gives float16 or bfloat16, got {elem_type}")
        axis = _axis(axis, len(shape), "fp4_to_fp")
        long = [2 * size if d == axis else size for d, size in enumerate(shape)]
        if not unresolved(layout):
            layout = naming.unpacked(layout, shape, axis)
        result = tile_type(elem_type, tuple(long), layout)
        return self._value(ttg.Fp4ToFpOp, (src.handle,), result, {"axis": ir.i32_attr(axis)})

    # -- many elements -----------------------------------------------------------------------------------------

    def _flat(self, input: tensor) -> tensor:
        return self.reshape(input, (input.numel.value,), can_reorder=False)

    def _reduced_type(self, input: tensor, axis: int) -> dtype:
        left = tuple(s for i, s in enumerate(block_shape(input)) if i != axis)
        if not left:
            return input.type.scalar
        layout = self.tile_layout(input, "a reduction")
        return self._inferred(input, layout if unresolved(layout) else naming.reduced(layout, axis), left)

    def _check_equal_shapes(self, inputs: Sequence[tensor], subject: str) -> tuple[int, ...]:
        shape = super()._check_equal_shapes(inputs, subject)
        for value in inputs[1:]:
            if self.tile_layout(value, subject) != self.tile_layout(inputs[0], subject):
                raise layouts_differ(subject, inputs[0].type, value.type)  # type: ignore[arg-type]
        return shape

    def positions(self, input: tensor, axis: int) -> tensor:
        """For each element of a tile, its index along an axis, where the element lies."""
        shape = block_shape(input)
        layout = self.tile_layout(input, "positions")
        others = [d for d in range(len(shape)) if d != axis]
        sliced = layout
        if not unresolved(layout):
            for d in reversed(others):
                sliced = SliceLayout(d, sliced)
        index = super().arange(0, shape[axis], ret_ty=tile_type(dt.int32, (shape[axis],), sliced))
        for d in others:
            index = self.expand_dims(index, d)
        return self.broadcast_impl_shape(index, shape)

    def histogram(self, input: tensor, num_bins: int, mask: tensor | None, layout: Any = None) -> tensor:
        """How often each of 0, 1, ... occurs, in a layout that must be given."""
        if layout is None:
            raise hinted(ValueError("histogram requires a destination layout"), "histogram(x, bins, layout=...)")
        self._bins = self.given_type(dt.int32, (num_bins,), layout)
        return super().histogram(input, num_bins, mask)

    def _histogram_type(self, num_bins: int) -> dtype:
        return self._bins


def _is_constant(value: tensor) -> bool:
    return getattr(value.handle.owner, "name", "") == "arith.constant"


def _axis(axis: int, rank: int, subject: str) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"{subject}: the axis must be from {-rank} to {rank - 1}, got {axis}")
    return axis % rank
