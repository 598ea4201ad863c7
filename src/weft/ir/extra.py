"""Operations that Triton's IR takes from MLIR's own dialects and that xDSL does not have, and one of our own."""

from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def

from .effects import ReadWriteOp, WriteOp

__all__ = ["AssumeOp", "BarrierOp", "EndUnlessOp"]


@irdl_op_definition
class AssumeOp(WriteOp):
    """A promise that a condition holds:  llvm.intr.assume %c : i1"""

    name = "llvm.intr.assume"
    cond = operand_def()
    op_bundle_sizes = opt_prop_def()


@irdl_op_definition
class BarrierOp(ReadWriteOp):
    """All threads of a program wait for each other; nothing to do where a program is one thread:  gpu.barrier"""

    name = "gpu.barrier"


@irdl_op_definition
class EndUnlessOp(WriteOp):
    """The program ends here if a condition, the same for all its threads, is false:  "weft.end_unless"(%c) : (i1) -> ()
    """

    name = "weft.end_unless"
    cond = operand_def()
