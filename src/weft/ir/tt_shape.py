"""Operations of `tt` that make tiles or move their elements about, computing nothing. All are pure.

Elements are in row-major order wherever an order is meant.
"""

from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from .effects import PureOp

__all__ = [
    "BroadcastOp",
    "CatOp",
    "ExpandDimsOp",
    "JoinOp",
    "MakeRangeOp",
    "ReshapeOp",
    "SplatOp",
    "SplitOp",
    "TransOp",
    "UnsplatOp",
]


@irdl_op_definition
class MakeRangeOp(PureOp):
    """The integers from `start` up to, not including, `end`:

    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    """

    name = "tt.make_range"
    start = prop_def()
    end = prop_def()
    result = result_def()


@irdl_op_definition
class SplatOp(PureOp):
    """A tile of one scalar:  %t = tt.splat %s : f32 -> tensor<128xf32>.  See `BroadcastOp` for a tile."""

    name = "tt.splat"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class UnsplatOp(PureOp):
    """The one element of a tile that has one:  %s = tt.unsplat %t : tensor<1xf32>"""

    name = "tt.unsplat"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class ExpandDimsOp(PureOp):
    """A tile with one more dimension, of size 1:

    %u = tt.expand_dims %t {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
    """

    name = "tt.expand_dims"
    src = operand_def()
    axis = prop_def()
    result = result_def()


@irdl_op_definition
class BroadcastOp(PureOp):
    """Dimensions of size 1 repeated:  %u = tt.broadcast %t : tensor<8x1xf32> -> tensor<8x4xf32>"""

    name = "tt.broadcast"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class ReshapeOp(PureOp):
    """The same elements in another shape:  %u = tt.reshape %t : tensor<8x4xf32> -> tensor<32xf32>

    With `allow_reorder` the compiler may permute the elements; Weft keeps their order.
    """

    name = "tt.reshape"
    src = operand_def()
    allow_reorder = opt_prop_def()
    efficient_layout = opt_prop_def()
    result = result_def()


@irdl_op_definition
class TransOp(PureOp):
    """Dimensions permuted; dimension i of the result is dimension `order[i]` of the source:

    %u = tt.trans %t {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
    """

    name = "tt.trans"
    src = operand_def()
    order = prop_def()
    result = result_def()


@irdl_op_definition
class CatOp(PureOp):
    """Two tiles end to end:  %u = tt.cat %a, %b : tensor<8xf32> -> tensor<16xf32>

    The language promises no order; Weft puts `lhs` first.
    """

    name = "tt.cat"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()


@irdl_op_definition
class JoinOp(PureOp):
    """Two tiles side by side in a new last dimension:  %u = tt.join %a, %b : tensor<8xf32> -> tensor<8x2xf32>"""

    name = "tt.join"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()


@irdl_op_definition
class SplitOp(PureOp):
    """The two halves of a tile whose last dimension is 2:  %a, %b = tt.split %u : tensor<8x2xf32> -> tensor<8xf32>"""

    name = "tt.split"
    src = operand_def()
    outLHS = result_def()
    outRHS = result_def()
