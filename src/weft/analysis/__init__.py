"""Questions about IR; no answer changes it."""

from .axis import AxisFacts, Facts

__all__ = ["AxisFacts", "Facts"]
