"""Barriers in gfx1250's local memory: words of 64 bits at which threads and copies arrive.

They have the names of Triton's operations; what a word says stands in `targets/amd/mbarriers.py`.
"""

from __future__ import annotations

from xdsl import irdl

from ..check.rules import fail, rule, show
from ..effects import ReadWriteOp
from ..gpu import MemDescType
from ..text import register
from ..text.elements import Form
from ..text.forms import is_type
from ..types import i32, i64


@irdl.irdl_op_definition
class InitBarrierOp(ReadWriteOp):
    """Make a barrier of which a phase is over after so many arrivals:

    amdg.init_barrier %bar {count = 128 : i32} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    """

    name = "amdg.init_barrier"
    alloc = irdl.operand_def()
    count = irdl.prop_def()


@irdl.irdl_op_definition
class WaitBarrierOp(ReadWriteOp):
    """Wait until the phase of this parity is over:

    amdg.wait_barrier %bar, %phase : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    """

    name = "amdg.wait_barrier"
    alloc = irdl.operand_def()
    phase = irdl.operand_def()


@irdl.irdl_op_definition
class ArriveBarrierOp(ReadWriteOp):
    """Each thread arrives, so often; the parity of the phase that this is in:

    %p = amdg.arrive_barrier %bar {count = 1 : i32} : !ttg.memdesc<1xi64, #shared, #smem, mutable> -> i32
    """

    name = "amdg.arrive_barrier"
    alloc = irdl.operand_def()
    count = irdl.prop_def()
    result = irdl.result_def(i32)


@irdl.irdl_op_definition
class CopiesArriveOp(ReadWriteOp):
    """Each thread arrives when the copies that it has begun are done:

    amdg.async_copy_mbarrier_arrive %bar : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    """

    name = "amdg.async_copy_mbarrier_arrive"
    alloc = irdl.operand_def()


register(InitBarrierOp, Form("%alloc{} : <alloc>"))
register(WaitBarrierOp, Form("%alloc, %phase{} : <alloc>", phase=is_type(i32)))
register(ArriveBarrierOp, Form("%alloc{} : <alloc -> result>"))
register(CopiesArriveOp, Form("%alloc{} : <alloc>"))


@rule(InitBarrierOp, WaitBarrierOp, ArriveBarrierOp, CopiesArriveOp)
def _barrier(op: InitBarrierOp | WaitBarrierOp | ArriveBarrierOp | CopiesArriveOp) -> None:
    type = op.alloc.type
    if not isinstance(type, MemDescType) or type.element_type != i64 or tuple(type.shape) != (1,):
        fail(op, f"a barrier is one i64 of shared memory, got {show(op.alloc)}")
