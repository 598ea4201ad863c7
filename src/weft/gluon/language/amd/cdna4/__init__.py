"""`gl.amd.cdna4`: what gfx950 has; not supported yet, but for the layout of scales."""

from __future__ import annotations

from weft.layouts import mfma_scale_layout as get_mfma_scale_layout

from ....elsewhere import only_on
from ...layouts import takes_plain_values
from . import async_copy

__all__ = [
    "async_copy",
    "buffer_atomic_add",
    "buffer_atomic_and",
    "buffer_atomic_max",
    "buffer_atomic_min",
    "buffer_atomic_or",
    "buffer_atomic_xchg",
    "buffer_atomic_xor",
    "buffer_load",
    "buffer_store",
    "compute_efficient_padded_shared_layout",
    "get_mfma_scale_layout",
    "load_shared_fp4_repacked",
    "mfma",
    "mfma_scaled",
    "scaled_upcast",
]

_MISSING = only_on(
    "amd.cdna4",
    [name for name in __all__ if name not in ("async_copy", "get_mfma_scale_layout")],
    "hip:gfx950",
)
buffer_atomic_add = _MISSING["buffer_atomic_add"]
buffer_atomic_and = _MISSING["buffer_atomic_and"]
buffer_atomic_max = _MISSING["buffer_atomic_max"]
buffer_atomic_min = _MISSING["buffer_atomic_min"]
buffer_atomic_or = _MISSING["buffer_atomic_or"]
buffer_atomic_xchg = _MISSING["buffer_atomic_xchg"]
buffer_atomic_xor = _MISSING["buffer_atomic_xor"]
buffer_load = _MISSING["buffer_load"]
buffer_store = _MISSING["buffer_store"]
mfma = _MISSING["mfma"]
mfma_scaled = _MISSING["mfma_scaled"]
compute_efficient_padded_shared_layout = _MISSING["compute_efficient_padded_shared_layout"]
load_shared_fp4_repacked = _MISSING["load_shared_fp4_repacked"]
scaled_upcast = _MISSING["scaled_upcast"]
takes_plain_values(get_mfma_scale_layout)
