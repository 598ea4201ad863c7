"""Questions about IR; no answer changes it."""

from .axis import AxisFacts, Facts
from .hazards import Hazards, Pending
from .lifetimes import Lifetime, lifetimes, lines_of, touched_buffers
from .touches import is_block_barrier
from .wrapping import WrappedOffset, wrapped_offsets

__all__ = [
    # tile IR and layout IR: what is known of the elements of tiles
    "AxisFacts",
    "Facts",
    "WrappedOffset",
    "wrapped_offsets",
    # lane programs: shared memory
    "Hazards",
    "Lifetime",
    "Pending",
    "is_block_barrier",
    "lifetimes",
    "lines_of",
    "touched_buffers",
]
