"""`gl.amd.gfx1250`: what gfx1250 has; not supported yet, but for the layout of scales."""

from __future__ import annotations

from weft.layouts import wmma_scale_layout as get_wmma_scale_layout

from ....elsewhere import only_on
from ...layouts import takes_plain_values
from . import async_copy, mbarrier, tdm

__all__ = [
    "async_copy",
    "buffer_load",
    "buffer_store",
    "get_wmma_scale_layout",
    "mbarrier",
    "tdm",
    "wmma",
    "wmma_scaled",
]

_MISSING = only_on(
    "amd.gfx1250",
    [
        "buffer_load",
        "buffer_store",
        "wmma",
        "wmma_scaled",
    ],
    "hip:gfx1250",
)
buffer_load = _MISSING["buffer_load"]
buffer_store = _MISSING["buffer_store"]
wmma = _MISSING["wmma"]
wmma_scaled = _MISSING["wmma_scaled"]
takes_plain_values(get_wmma_scale_layout)
