"""`hopper.async_store`: tiles sent to the shared memory of a cluster, which go on while the program does other things.

mbarrier.expect(bar, memory.nbytes_per_cta)
hopper.async_store(memory, value, bar)          # done when the barrier's phase is over
"""

from __future__ import annotations

from typing import Any

from weft.ir.nvidia import ttng
from weft.language.protocol import GIVEN, builtin

from ....memory import shared_memory_descriptor
from ....semantic import GluonSemantic
from ..barriers import barrier_handle

__all__ = ["async_store"]


@builtin
def async_store(dst: Any, value: Any, mbarrier: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """Begin to put a tile into shared memory of its shape and element type; its bytes count at the mbarrier.

    In a cluster of two blocks or more. Each block's mbarrier counts what comes to that block's memory; blocks that hold
    copies of a tile write their own memory where it holds copies too.
    """
    if not isinstance(dst, shared_memory_descriptor):
        raise TypeError(f"async_store needs shared memory to store to, got {dst}")
    _semantic._check_same(dst.type, value)
    operands = (value.handle, dst.handle, barrier_handle("async_store", mbarrier))
    _semantic.builder.create(ttng.AsyncSharedStoreOp, operands)
