"""What only Intel's GPUs need of the passes; see `passes/vendor.py`."""

from __future__ import annotations

from ..vendor import VendorPasses

__all__ = ["PASSES"]

PASSES = VendorPasses()
