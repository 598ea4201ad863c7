"""Questions about IR; no answer changes it.

What is asked of lane programs is loaded when it is first used: it brings the layouts and the instructions of GPUs with
it, which a compilation for the CPU needs nothing of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.base import lazy_face

from .axis import AxisFacts, Facts
from .bounds import IntegerBounds
from .combining import commutes
from .operands import DEEP, operands_first, parts_first
from .wrapping import WrappedOffset, wrapped_offsets

if TYPE_CHECKING:
    from .global_touches import GlobalTouch, GlobalTouches, of_one_row, of_one_store
    from .hazards import ORDERING, Hazards, Pending
    from .limits import Limit, limit_of_run
    from .liveness import Lifetime, Numbered, lifetimes, lines_of_buffers, touched_buffers
    from .touches import is_block_barrier, is_cluster_barrier

__all__ = [
    # tile IR and layout IR: what is known of the elements of tiles
    "AxisFacts",
    "Facts",
    "IntegerBounds",
    "Limit",
    "limit_of_run",
    "WrappedOffset",
    "commutes",
    "wrapped_offsets",
    "DEEP",
    "operands_first",
    "parts_first",
    # lane programs: global memory
    "GlobalTouch",
    "GlobalTouches",
    "of_one_row",
    "of_one_store",
    # lane programs: shared memory
    "Hazards",
    "ORDERING",
    "Lifetime",
    "Numbered",
    "Pending",
    "is_block_barrier",
    "is_cluster_barrier",
    "lifetimes",
    "lines_of_buffers",
    "touched_buffers",
]

__getattr__ = lazy_face(
    __name__,
    {
        "global_touches": "GlobalTouch GlobalTouches of_one_row of_one_store",
        "hazards": "ORDERING Hazards Pending",
        "limits": "Limit limit_of_run",
        "liveness": "Lifetime Numbered lifetimes lines_of_buffers touched_buffers",
        "touches": "is_block_barrier is_cluster_barrier",
    },
)
