"""`rubin.mbarrier`: as on Hopper."""

from ...layouts import MBarrierLayout
from ..hopper.mbarrier import allocate_mbarrier, arrive, expect, init, invalidate, wait

__all__ = ["MBarrierLayout", "allocate_mbarrier", "arrive", "expect", "init", "invalidate", "wait"]
