"""Operations of `tt` for functions, the place of a program in its grid, and diagnostics from the device."""

from xdsl import irdl
from xdsl.dialects.builtin import FunctionType, StringAttr
from xdsl.ir import Block
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure, SymbolOpInterface

from .effects import PureOp, ReadWriteOp, WriteOp

__all__ = ["AssertOp", "CallOp", "FuncOp", "GetNumProgramsOp", "GetProgramIdOp", "PrintOp", "ReturnOp"]


@irdl.irdl_op_definition
class FuncOp(irdl.IRDLOperation):
    """A kernel (`public`) or a function that it calls (`private`):

    tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} { ... }
    """

    name = "tt.func"
    sym_name = irdl.prop_def(StringAttr)
    function_type = irdl.prop_def(FunctionType)
    sym_visibility = irdl.opt_prop_def(StringAttr)
    arg_attrs = irdl.opt_prop_def()
    res_attrs = irdl.opt_prop_def()
    body = irdl.region_def()
    traits = irdl.traits_def(IsolatedFromAbove(), SymbolOpInterface())

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


@irdl.irdl_op_definition
class CallOp(ReadWriteOp):
    """A call of a function of the module:  %r = tt.call @f(%x) : (f32) -> f32"""

    name = "tt.call"
    callee = irdl.prop_def()
    args = irdl.var_operand_def()
    arg_attrs = irdl.opt_prop_def()
    res_attrs = irdl.opt_prop_def()
    result = irdl.var_result_def()


@irdl.irdl_op_definition
class ReturnOp(irdl.IRDLOperation):
    """The end of a function:  tt.return %x : f32"""

    name = "tt.return"
    srcs = irdl.var_operand_def()
    traits = irdl.traits_def(Pure(), IsTerminator())


@irdl.irdl_op_definition
class GetProgramIdOp(PureOp):
    """Which program this is, along one axis of the grid:  %i = tt.get_program_id x : i32"""

    name = "tt.get_program_id"
    axis = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class GetNumProgramsOp(PureOp):
    """How many programs the grid has along one axis:  %n = tt.get_num_programs x : i32"""

    name = "tt.get_num_programs"
    axis = irdl.prop_def()
    result = irdl.result_def()


@irdl.irdl_op_definition
class PrintOp(WriteOp):
    """Values printed from the device, one line an element:

    tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : tensor<128xi32>
    """

    name = "tt.print"
    prefix = irdl.prop_def(StringAttr)
    hex = irdl.prop_def()
    args = irdl.var_operand_def()
    isSigned = irdl.prop_def()


@irdl.irdl_op_definition
class AssertOp(WriteOp):
    """Ends the launch with an error unless every element is true:  tt.assert %c, "x is negative" : tensor<128xi1>"""

    name = "tt.assert"
    condition = irdl.operand_def()
    message = irdl.prop_def(StringAttr)
