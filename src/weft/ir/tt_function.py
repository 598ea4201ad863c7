"""Operations of `tt` for functions, the place of a program in its grid, and diagnostics from the device."""

from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.ir import Block
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from .effects import PureOp, ReadWriteOp, WriteOp

__all__ = ["AssertOp", "CallOp", "FuncOp", "GetNumProgramsOp", "GetProgramIdOp", "PrintOp", "ReturnOp"]


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel (`public`) or a function that it calls (`private`):

    tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} { ... }
    """

    name = "tt.func"
    sym_name = prop_def(StringAttr)
    function_type = prop_def(FunctionType)
    sym_visibility = opt_prop_def(StringAttr)
    arg_attrs = opt_prop_def()
    res_attrs = opt_prop_def()
    body = region_def()
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())

    @property
    def entry(self) -> Block:
        """The block that the function begins with."""
        block = self.body.blocks.first
        if block is None:
            raise ValueError(f"function @{self.sym_name.data} has no body")
        return block

    @property
    def is_public(self) -> bool:
        """Is this a kernel, to be launched?"""
        return self.sym_visibility is None or self.sym_visibility.data == "public"


@irdl_op_definition
class CallOp(ReadWriteOp):
    """A call of a function of the module:  %r = tt.call @f(%x) : (f32) -> f32"""

    name = "tt.call"
    callee = prop_def()
    args = var_operand_def()
    arg_attrs = opt_prop_def()
    res_attrs = opt_prop_def()
    result = var_result_def()


@irdl_op_definition
class ReturnOp(IRDLOperation):
    """The end of a function:  tt.return %x : f32"""

    name = "tt.return"
    srcs = var_operand_def()
    traits = traits_def(Pure(), IsTerminator())


@irdl_op_definition
class GetProgramIdOp(PureOp):
    """Which program this is, along one axis of the grid:  %i = tt.get_program_id x : i32"""

    name = "tt.get_program_id"
    axis = prop_def()
    result = result_def()


@irdl_op_definition
class GetNumProgramsOp(PureOp):
    """How many programs the grid has along one axis:  %n = tt.get_num_programs x : i32"""

    name = "tt.get_num_programs"
    axis = prop_def()
    result = result_def()


@irdl_op_definition
class PrintOp(WriteOp):
    """Values printed from the device, one line an element:

    tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : tensor<128xi32>
    """

    name = "tt.print"
    prefix = prop_def(StringAttr)
    hex = prop_def()
    args = var_operand_def()
    isSigned = prop_def()


@irdl_op_definition
class AssertOp(WriteOp):
    """Ends the launch with an error unless every element is true:  tt.assert %c, "x is negative" : tensor<128xi1>"""

    name = "tt.assert"
    condition = operand_def()
    message = prop_def(StringAttr)
