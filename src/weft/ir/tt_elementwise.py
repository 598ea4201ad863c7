"""Operations of `tt` that work element by element: casts, pointer arithmetic and a few that `arith` and `math` lack.

All are pure and take scalars as well as tiles; operands and result have one shape.
"""

from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from .effects import PureOp

__all__ = [
    "AddPtrOp",
    "BitcastOp",
    "ClampFOp",
    "FpToFpOp",
    "IntToPtrOp",
    "PtrToIntOp",
]


@irdl_op_definition
class AddPtrOp(PureOp):
    """A pointer moved by a number of elements:  %q = tt.addptr %p, %n : !tt.ptr<f32>, i32

    The offset is a signed integer of any width, counted in elements of the pointee.
    """

    name = "tt.addptr"
    ptr = operand_def()
    offset = operand_def()
    result = result_def()


@irdl_op_definition
class IntToPtrOp(PureOp):
    """An address as a pointer:  %p = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>"""

    name = "tt.int_to_ptr"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class PtrToIntOp(PureOp):
    """A pointer's address:  %a = tt.ptr_to_int %p : !tt.ptr<f32> -> i64"""

    name = "tt.ptr_to_int"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class BitcastOp(PureOp):
    """The same bits as another type of the same width:  %y = tt.bitcast %x : i32 -> f32

    Unlike `arith.bitcast` it also takes pointers.
    """

    name = "tt.bitcast"
    src = operand_def()
    result = result_def()


@irdl_op_definition
class FpToFpOp(PureOp):
    """A conversion between floats of which one is an fp8, or with a rounding other than the usual:

    %y = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E5M2

    `rounding` is there exactly where the result is narrower. `arith.extf` and `arith.truncf` do the rest.
    """

    name = "tt.fp_to_fp"
    src = operand_def()
    rounding = opt_prop_def()
    result = result_def()


@irdl_op_definition
class ClampFOp(PureOp):
    """`x` held between two bounds:  %y = tt.clampf %x, %lo, %hi, propagateNan = none : f32

    With `none` a NaN in `x` becomes `lo`; with `all` it stays a NaN.
    """

    name = "tt.clampf"
    x = operand_def()
    min = operand_def()
    max = operand_def()
    propagateNan = prop_def()
    result = result_def()
