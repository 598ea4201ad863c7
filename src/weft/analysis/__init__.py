"""Questions about IR; no answer changes it.

What is asked of lane programs is loaded when it is first used: it brings the layouts and the instructions of GPUs with
it, which a compilation for the CPU needs nothing of.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .axis import AxisFacts, Facts
from .wrapping import WrappedOffset, wrapped_offsets

if TYPE_CHECKING:
    from .hazards import Hazards, Pending
    from .liveness import Lifetime, lifetimes, lines_of, touched_buffers
    from .touches import is_block_barrier, is_cluster_barrier

_PLACES = {
    "Hazards": "hazards",
    "Pending": "hazards",
    "Lifetime": "liveness",
    "lifetimes": "liveness",
    "lines_of": "liveness",
    "touched_buffers": "liveness",
    "is_block_barrier": "touches",
    "is_cluster_barrier": "touches",
}

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
    "is_cluster_barrier",
    "lifetimes",
    "lines_of",
    "touched_buffers",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: Any = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value
