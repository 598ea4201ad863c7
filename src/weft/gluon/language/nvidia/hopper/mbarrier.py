"""`hopper.mbarrier`: barriers in shared memory that also count the bytes of bulk copies.

mbarrier.expect(bar, desc.block_type.nbytes)
tma.async_copy_global_to_shared(desc, [0, 0], bar, memory)
mbarrier.wait(bar, phase=0)
"""

from __future__ import annotations

from ...barriers import arrive, expect, init, invalidate, wait
from ...layouts import MBarrierLayout

__all__ = ["MBarrierLayout", "arrive", "expect", "init", "invalidate", "wait"]
