"""`gl.amd.cdna5.mbarrier`: barriers in shared memory, at which threads and copies arrive (../mbarriers.py)."""

from ...layouts import MBarrierLayout as MBarrierLayout
from ..mbarriers import arrive as arrive, init as init, wait as wait

__all__ = ["MBarrierLayout", "arrive", "init", "wait"]
