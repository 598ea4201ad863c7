"""The part of the lowering for Intel's GPUs: 2D blocks of memory; see `lower/vendor.py`."""

from __future__ import annotations

from ..vendor import VendorLowering
from .blocks import lower_load, lower_prefetch, lower_store

__all__ = ["LOWERING"]


class _Lowering(VendorLowering):
    """See `lower/vendor.py`."""

    lowerings = {
        "ttig.block_load": lower_load,
        "ttig.block_store": lower_store,
        "ttig.block_prefetch": lower_prefetch,
    }


LOWERING = _Lowering()
