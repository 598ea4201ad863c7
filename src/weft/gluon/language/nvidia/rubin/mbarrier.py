"""`rubin.mbarrier`: as on Hopper."""

from __future__ import annotations

from ...layouts import MBarrierLayout
from ..hopper.mbarrier import allocate_mbarrier, arrive, expect, init, invalidate, wait

__all__ = ["MBarrierLayout", "allocate_mbarrier", "arrive", "expect", "init", "invalidate", "wait"]
