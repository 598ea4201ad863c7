"""Operations that Triton's IR takes from MLIR's own dialects and that xDSL does not have."""

from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

__all__ = ["AssumeOp", "BarrierOp"]


@irdl_op_definition
class AssumeOp(IRDLOperation):
    """A promise that a condition holds:  llvm.intr.assume %c : i1"""

    name = "llvm.intr.assume"
    cond = operand_def()
    op_bundle_sizes = opt_prop_def()
    traits = traits_def(MemoryWriteEffect())


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of a program wait for each other; nothing to do where a program is one thread:  gpu.barrier"""

    name = "gpu.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
