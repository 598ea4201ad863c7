"""Descriptors of the Triton language in a kernel that has layouts: operations of Weft's own.

    %base, %padding, %m, %n, %s, %t = weft.descriptor_parts %d : (!tt.tensordesc<tensor<64x64xf16>>)
        -> (!tt.ptr<f16>, i64, i64, i64, i64, i64)
    %blocks = weft.descriptor_blocks %d : (!tt.tensordesc<tensor<64x64xf16>>)
        -> !tt.tensordesc<tensor<128x64xf16, #shared>>

A launch hands over such a descriptor in its parts, and for each kind of blocks that the copy engine moves as a tensor
map besides. See `passes/nvidia/given_descriptors.py`.
"""

from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ..effects import PureOp


@irdl_op_definition
class DescriptorPartsOp(PureOp):
    """Where a tensor begins, 1 if what lies outside is NaN and else 0, its extents, its strides in elements."""

    name = "weft.descriptor_parts"
    descriptor = operand_def()
    parts = var_result_def()


@irdl_op_definition
class DescriptorBlocksOp(PureOp):
    """The same tensor, of which bulk copies move blocks of that shape and layout."""

    name = "weft.descriptor_blocks"
    descriptor = operand_def()
    result = result_def()


@irdl_op_definition
class DescriptorMadeOp(PureOp):
    """A tensor that several parameters describe together (`weft.base.made_tensors`), of which bulk copies move blocks.

    `sums` are how many bytes behind `base` it begins, its shape and its strides; `limited` are parameters that are
    taken to be at least the numbers `least`.
    """

    name = "weft.descriptor_made"
    base = operand_def()
    sums = var_operand_def()
    limited = var_operand_def()
    least = prop_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
