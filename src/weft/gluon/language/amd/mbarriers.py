"""`gl.amd.gfx1250.mbarrier`: barriers in shared memory of gfx1250, at which threads and copies arrive.

    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=gl.num_warps())           # so many warps copy
    tdm.async_load(desc, [row, column], memory, mbarrier=bar)
    mbarrier.wait(bar, 0)

Every thread arrives for itself (`arrive`, `async_copy.mbarrier_arrive`), a copy of a block once for each warp that has
a part of it. Phases are numbered from 0.
"""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.base import hinted
from weft.ir.amd import mbarriers as ops
from weft.language import dtypes as dt
from weft.language.protocol import GIVEN, builtin
from weft.language.tensors import tensor

from ...memory import shared_memory_descriptor
from ...operands import known_number
from ...semantic import GluonSemantic
from .processors import check_processor

TARGET = "hip:gfx1250"


def barrier_handle(name: str, value: Any, semantic: GluonSemantic) -> Any:
    """The handle of an mbarrier."""
    check_processor(name, TARGET, semantic)
    if not isinstance(value, shared_memory_descriptor) or value.dtype != dt.int64 or list(value.shape) != [1]:
        shown = f"{value}" if isinstance(value, shared_memory_descriptor) else repr(value)
        raise hinted(
            TypeError(f"{name} needs an mbarrier, one int64 of shared memory, got {shown}"),
            "bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout()); of several, bars.index(i)",
        )
    return value.handle


@builtin
def init(mbarrier: Any, count: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """Make an mbarrier, in phase 0; each phase is over when `count` have arrived."""
    handle = barrier_handle("mbarrier.init", mbarrier, _semantic)
    number = known_number("mbarrier.init: count", count, 1)
    _semantic.builder.create(ops.InitBarrierOp, (handle,), (), {"count": ir.i32_attr(number)})


@builtin
def wait(mbarrier: Any, phase: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """Wait until the phase of this parity is over, which is until the barrier is in one of the other parity."""
    handle = barrier_handle("mbarrier.wait", mbarrier, _semantic)
    parity = _semantic.to_tensor(phase)
    if not parity.type.is_int():
        raise TypeError(f"mbarrier.wait: the phase must be a scalar integer, 0 or 1, got {parity}")
    _semantic.builder.create(ops.WaitBarrierOp, (handle, _semantic.cast(parity, dt.int32).handle))


@builtin
def arrive(mbarrier: Any, *, count: Any = 1, _semantic: GluonSemantic = GIVEN) -> tensor:
    """Each thread arrives `count` times; the parity of the phase that the barrier was in before."""
    handle = barrier_handle("mbarrier.arrive", mbarrier, _semantic)
    number = known_number("mbarrier.arrive: count", count, 1)
    op = _semantic.builder.create(ops.ArriveBarrierOp, (handle,), (ir.i32,), {"count": ir.i32_attr(number)})
    return tensor(op.results[0], dt.int32)
