"""Questions about IR; no answer changes it."""

from .axis import AxisFacts, Facts
from .wrapping import WrappedOffset, wrapped_offsets

__all__ = ["AxisFacts", "Facts", "WrappedOffset", "wrapped_offsets"]
