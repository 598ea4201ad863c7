"""Operations over many elements: reductions, scans, maps, gathers, histograms.

The function that combines elements is given as one that fills the operation's region: it gets the operation's block
(its arguments are there already) and leaves its results in a return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, Region

from weft import ir
from weft.ir import tt

from .. import dtypes as dt
from ..constants import wrap_axis
from ..dtypes import block_of, block_type, dtype
from ..tensors import tensor
from .base import block_shape, shape_text
from .shapes import Shapes

RegionBuilder = Callable[[Operation], None]


class Collectives(Shapes):
    """Elements combined with one another."""

    def wrap_tensor(self, x: Any, scalar_ty: dtype, ret_shape: Sequence[int]) -> tensor:
        """An IR value as a tensor; a scalar where the shape is empty."""
        return tensor(x, block_of(scalar_ty, tuple(ret_shape)) if ret_shape else scalar_ty)

    def _check_equal_shapes(self, inputs: Sequence[tensor], subject: str) -> tuple[int, ...]:
        if not inputs:
            raise ValueError(f"{subject} needs at least one tensor")
        shape = block_shape(inputs[0])
        if not shape:
            raise ValueError(f"{subject} needs tensors, got the scalar {inputs[0]}")
        for value in inputs[1:]:
            if block_shape(value) != shape:
                raise ValueError(
                    f"{subject} needs all tensors in one shape, "
                    f"got {shape_text(shape)} and {shape_text(block_shape(value))}"
                )
        return shape

    def _with_region(
        self, op: type[Operation], inputs: Sequence[tensor], results: Sequence[Any], properties: dict[str, Any],
        arguments: Sequence[dtype], region_builder_fn: RegionBuilder,
    ) -> Operation:  # fmt: skip
        """An operation with a region of one block, filled by `region_builder_fn`."""
        block = Block(arg_types=[t.to_ir() for t in arguments])
        op_made = self.builder.create(
            op, [t.handle for t in inputs], [t.to_ir() for t in results], properties, regions=[Region(block)]
        )
        with self.builder.inside(block):
            region_builder_fn(op_made)
        return op_made

    def reduction(
        self, inputs: Sequence[tensor], axis: int | None, region_builder_fn: RegionBuilder
    ) -> tuple[tensor, ...]:
        """All elements along an axis combined into one; without an axis all there are."""
        if axis is None:
            inputs = [self._flat(t) for t in inputs]
            axis = 0
        shape = self._check_equal_shapes(inputs, "a reduction")
        axis = wrap_axis(axis, len(shape))
        scalars = [t.type.scalar for t in inputs]
        results = [self._reduced_type(t, axis) for t in inputs]
        properties = {"axis": ir.i32_attr(axis)}
        op = self._with_region(tt.ReduceOp, inputs, results, properties, scalars * 2, region_builder_fn)
        return tuple(tensor(r, t) for r, t in zip(op.results, results, strict=True))

    def _flat(self, input: tensor) -> tensor:
        """All elements in one dimension, in any order."""
        return self.reshape(input, (input.numel.value,), can_reorder=True)

    def _reduced_type(self, input: tensor, axis: int) -> dtype:
        """The type of a reduction's result."""
        left = tuple(s for i, s in enumerate(block_shape(input)) if i != axis)
        return block_of(input.type.scalar, left) if left else input.type.scalar

    def positions(self, input: tensor, axis: int) -> tensor:
        """For each element of a tile, its index along an axis."""
        shape = block_shape(input)
        index = self.arange(0, shape[axis])
        for other in range(len(shape)):
            if other != axis:
                index = self.expand_dims(index, other)
        return self.broadcast_impl_shape(index, shape)

    def associative_scan(
        self, inputs: Sequence[tensor], axis: int, region_builder_fn: RegionBuilder, reverse: bool
    ) -> tuple[tensor, ...]:
        """All partial combinations along an axis."""
        shape = self._check_equal_shapes(inputs, "a scan")
        axis = wrap_axis(axis, len(shape))
        scalars = [t.type.scalar for t in inputs]
        results = [t.type for t in inputs]
        properties = {"axis": ir.i32_attr(axis), "reverse": ir.bool_attr(bool(reverse))}
        op = self._with_region(tt.ScanOp, inputs, results, properties, scalars * 2, region_builder_fn)
        return tuple(tensor(r, t) for r, t in zip(op.results, results, strict=True))

    def map_elementwise(
        self, inputs: Sequence[tensor], result_types: Sequence[dtype], pack: int, block: Block
    ) -> tuple[tensor, ...]:
        """The scalar function that `block` holds, on every element, `pack` elements a call."""
        self._check_equal_shapes(inputs, "map_elementwise")
        results = [inputs[0].type.with_element_ty(t) for t in result_types]
        op = self.builder.create(
            tt.MapElementwiseOp,
            [t.handle for t in inputs],
            [t.to_ir() for t in results],
            {"pack": ir.i32_attr(pack)},
            regions=[Region(block)],
        )
        return tuple(tensor(r, t) for r, t in zip(op.results, results, strict=True))

    def gather(self, src: tensor, index: tensor, axis: int) -> tensor:
        """Elements picked by an index along an axis."""
        if not index.dtype.is_int():
            raise TypeError(f"index must be an integer tensor, got {index.dtype}")
        source, picked = block_shape(src), block_shape(index)
        if not source or len(source) != len(picked):
            raise ValueError(
                f"source and index tensors must have the same rank: got {shape_text(source)} and {shape_text(picked)}"
            )
        axis = wrap_axis(axis, len(source))
        for dim in range(len(source)):
            if dim != axis and source[dim] != picked[dim]:
                raise ValueError(
                    f"index dim {dim} must match the corresponding source dim: "
                    f"got {shape_text(picked)} for a source of {shape_text(source)} and axis {axis}"
                )
        result = index.type.with_element_ty(src.type.scalar)
        return self._value(tt.GatherOp, (src.handle, index.handle), result, {"axis": ir.i32_attr(axis)})

    def _histogram_type(self, num_bins: int) -> dtype:
        return block_type(dt.int32, [num_bins])

    def histogram(self, input: tensor, num_bins: int, mask: tensor | None) -> tensor:
        """How often each of 0, 1, ... occurs."""
        shape = block_shape(input)
        if len(shape) != 1:
            raise ValueError(f"histogram only supports 1D input, got shape {shape_text(shape)}")
        if not input.dtype.is_int():
            raise TypeError(f"histogram only supports integer input, got {input.dtype}")
        if input.dtype.is_int_unsigned() and input.dtype.int_bitwidth < 32:
            input = self.cast(input, dt.int32)  # tile IR has no signs: the upper half of uint8 would be negative
        operands = [input.handle]
        if mask is not None:
            mask = self.broadcast_to_tile(mask, input)
            if not mask.type.scalar.is_bool():
                raise ValueError(f"Mask must have boolean scalar type, got {mask.type.scalar}")
            operands.append(mask.handle)
        return self._value(tt.HistogramOp, operands, self._histogram_type(num_bins))

    # -- reductions whose function is known here ---------------------------------------------------------------

    def combine_region(
        self, build: Callable[[list[tensor]], Sequence[tensor]], types: Sequence[dtype], terminator: type[Operation]
    ) -> RegionBuilder:
        """A region builder from a function on scalar tensors: all of the left, then all of the right."""

        def fill(op: Operation) -> None:
            block = self.builder.block
            assert block is not None
            arguments = [tensor(a, t) for a, t in zip(block.args, [*types, *types], strict=True)]
            self.builder.create(terminator, [r.handle for r in build(arguments)])

        return fill

    def reduce_with(self, op: type[Operation], input: tensor, axis: int | None) -> tensor:
        """A reduction whose function is one operation on two scalars."""
        if axis is None:
            input, axis = self._flat(input), 0
        scalar = input.type.scalar

        def combine(args: list[tensor]) -> list[tensor]:
            return [self._same(op, args[0], args[1])]

        return self._noted(op, self.reduction([input], axis, self.combine_region(combine, [scalar], tt.ReduceReturnOp)))

    def scan_with(self, op: type[Operation], input: tensor, axis: int, reverse: bool) -> tensor:
        """A scan whose function is one operation on two scalars."""
        if input.dtype.is_ptr():
            raise TypeError(f"a scan takes numbers, got {input.dtype}")

        def combine(args: list[tensor]) -> list[tensor]:
            return [self._same(op, args[0], args[1])]

        region = self.combine_region(combine, [input.type.scalar], tt.ScanReturnOp)
        return self._noted(op, self.associative_scan([input], axis, region, reverse))

    def _noted(self, op: type[Operation], results: Sequence[tensor]) -> tensor:
        """The one result; while debugging a sum or product of signed integers says that it is one (`doubtful`)."""
        result = results[0]
        checks = self.options.debug and self.options.sanitize_overflow
        if checks and op in (arith.AddiOp, arith.MuliOp) and result.dtype.is_int_signed():
            result.handle.owner.attributes["tt.signed"] = ir.unit_attr()
        return result
