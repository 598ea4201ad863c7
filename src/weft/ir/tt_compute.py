"""Operations of `tt` whose results depend on many elements, or that call code for each element.

`tt.reduce`, `tt.scan` and `tt.map_elementwise` hold that code in a region on scalars, ended by their own return.
"""

from xdsl import irdl
from xdsl.dialects.builtin import f32
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect

from .attrs import int_value
from .effects import PureOp
from .enums import InputPrecision
from .types import element_of

__all__ = [
    "DotOp",
    "DotScaledOp",
    "ElementwiseInlineAsmOp",
    "ExternElementwiseOp",
    "GatherOp",
    "HistogramOp",
    "MapElementwiseOp",
    "MapElementwiseReturnOp",
    "ReduceOp",
    "ReduceReturnOp",
    "ScanOp",
    "ScanReturnOp",
]


@irdl.irdl_op_definition
class DotOp(PureOp):
    """A matrix product plus an accumulator, batched where there are three dimensions:

    %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
    """

    name = "tt.dot"
    a = irdl.operand_def()
    b = irdl.operand_def()
    c = irdl.operand_def()
    inputPrecision = irdl.opt_prop_def()
    maxNumImpreciseAcc = irdl.opt_prop_def()
    d = irdl.result_def()

    @property
    def is_precise(self) -> bool:
        """Whether all bits of f32 are multiplied; so it is where nothing is said."""
        precision = None if self.inputPrecision is None else int_value(self.inputPrecision)
        return element_of(self.a.type) == f32 and precision != InputPrecision.TF32


@irdl.irdl_op_definition
class DotScaledOp(PureOp):
    """A matrix product of block-scaled operands plus an accumulator:

    %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e2m1 {fastMath = false}
         : tensor<128x64xf8E4M3FN>, tensor<128x2xi8> * tensor<32x128xi8>, tensor<128x2xi8> -> tensor<128x128xf32>
    """

    name = "tt.dot_scaled"
    a = irdl.operand_def()
    b = irdl.operand_def()
    c = irdl.operand_def()
    a_scale = irdl.opt_operand_def()
    b_scale = irdl.opt_operand_def()
    a_elem_type = irdl.prop_def()
    b_elem_type = irdl.prop_def()
    fastMath = irdl.prop_def()
    lhs_k_pack = irdl.opt_prop_def()
    rhs_k_pack = irdl.opt_prop_def()
    d = irdl.result_def()
    irdl_options = (irdl.AttrSizedOperandSegments(as_property=True),)


@irdl.irdl_op_definition
class ReduceOp(irdl.IRDLOperation):
    """Tiles combined along one axis by the function in the region, in any order:

    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<128xf32>) -> f32

    With n sources the region has 2n arguments: all of the left, then all of the right.
    """

    name = "tt.reduce"
    srcs = irdl.var_operand_def()
    axis = irdl.prop_def()
    result = irdl.var_result_def()
    combineOp = irdl.region_def()
    traits = irdl.traits_def(RecursiveMemoryEffect())


@irdl.irdl_op_definition
class ReduceReturnOp(irdl.IRDLOperation):
    """The end of a combine function:  tt.reduce.return %c : f32"""

    name = "tt.reduce.return"
    result = irdl.var_operand_def()
    traits = irdl.traits_def(Pure(), IsTerminator())


@irdl.irdl_op_definition
class ScanOp(irdl.IRDLOperation):
    """All partial combinations along one axis, from the front or (`reverse`) from the back; see `ReduceOp`.

    %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({ ... }) : (tensor<128xf32>) -> tensor<128xf32>
    """

    name = "tt.scan"
    srcs = irdl.var_operand_def()
    axis = irdl.prop_def()
    reverse = irdl.prop_def()
    result = irdl.var_result_def()
    combineOp = irdl.region_def()
    traits = irdl.traits_def(RecursiveMemoryEffect())


@irdl.irdl_op_definition
class ScanReturnOp(irdl.IRDLOperation):
    """The end of a scan's combine function:  tt.scan.return %c : f32"""

    name = "tt.scan.return"
    result = irdl.var_operand_def()
    traits = irdl.traits_def(Pure(), IsTerminator())


@irdl.irdl_op_definition
class MapElementwiseOp(irdl.IRDLOperation):
    """A function on scalars, which may branch, applied to every element, `pack` elements a call:

    %y = "tt.map_elementwise"(%x) <{pack = 1 : i32}> ({ ... }) : (tensor<128xf32>) -> tensor<128xf32>

    Its region may have several blocks. Arguments and results are repeated `pack` times: all packed elements of the
    first source, then those of the second.
    """

    name = "tt.map_elementwise"
    srcs = irdl.var_operand_def()
    pack = irdl.prop_def()
    result = irdl.var_result_def()
    scalarOp = irdl.region_def()
    traits = irdl.traits_def(RecursiveMemoryEffect())


@irdl.irdl_op_definition
class MapElementwiseReturnOp(irdl.IRDLOperation):
    """The end of the function of a map:  tt.map_elementwise.return %y : f32"""

    name = "tt.map_elementwise.return"
    result = irdl.var_operand_def()
    traits = irdl.traits_def(Pure(), IsTerminator())


@irdl.irdl_op_definition
class ExternElementwiseOp(irdl.IRDLOperation):
    """A library function by name, applied element by element:

    %y = tt.extern_elementwise %x {libname = "libdevice", libpath = "", pure = true, symbol = "__nv_tanf"}
         : (tensor<128xf32>) -> tensor<128xf32>
    """

    name = "tt.extern_elementwise"
    srcs = irdl.var_operand_def()
    libname = irdl.prop_def()
    libpath = irdl.prop_def()
    symbol = irdl.prop_def()
    pure = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class ElementwiseInlineAsmOp(irdl.IRDLOperation):
    """Inline assembly of a GPU; never run on a CPU, kept so that the text round-trips.

    %y = tt.elementwise_inline_asm "..." {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    """

    name = "tt.elementwise_inline_asm"
    asm_string = irdl.prop_def()
    constraints = irdl.prop_def()
    pure = irdl.prop_def()
    packed_element = irdl.prop_def()
    args = irdl.var_operand_def()
    result = irdl.var_result_def()


@irdl.irdl_op_definition
class HistogramOp(PureOp):
    """How often each of 0, 1, ... occurs:  %h = tt.histogram %x, %mask : tensor<128xi32> -> tensor<16xi32>"""

    name = "tt.histogram"
    src = irdl.operand_def()
    mask = irdl.opt_operand_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class GatherOp(PureOp):
    """Elements of a tile picked by indices along one axis:

    %y = tt.gather %x[%i] {axis = 0 : i32} : (tensor<128x4xf32>, tensor<16x4xi32>) -> tensor<16x4xf32>
    """

    name = "tt.gather"
    src = irdl.operand_def()
    indices = irdl.operand_def()
    axis = irdl.prop_def()
    efficient_layout = irdl.opt_prop_def()
    result = irdl.result_def()
