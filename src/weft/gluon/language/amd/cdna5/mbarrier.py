"""`gl.amd.cdna5.mbarrier`: barriers in shared memory of gfx1250; not supported yet."""

from ....elsewhere import unsupported as _unsupported
from ...layouts import MBarrierLayout as MBarrierLayout

_instead = "gl.barrier() meets all threads of a block; "
__getattr__ = _unsupported(
    globals(),
    "amd.cdna5.mbarrier",
    "hip:gfx1250",
    "arrive init wait",
    instead={
        "arrive": _instead + "the instruction is ds_atomic_barrier_arrive_rtn_b64",
        "init": _instead + "such a barrier is for ds_atomic_barrier_arrive_rtn_b64",
        "wait": _instead + "such a barrier is for ds_atomic_barrier_arrive_rtn_b64",
    },
)
