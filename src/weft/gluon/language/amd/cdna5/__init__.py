"""`gl.amd.cdna5`: what gfx1250 has; not supported yet, but for the layout of scales."""

from __future__ import annotations

from weft.layouts import wmma_scale_layout as get_wmma_scale_layout

from ....elsewhere import only_on
from ...layouts import takes_plain_values
from . import async_copy, cluster, mbarrier, tdm
from ._layouts import PartitionedSharedLayout, make_partitioned_dot_layouts

__all__ = [
    "PartitionedSharedLayout",
    "async_copy",
    "buffer_load",
    "buffer_store",
    "cluster",
    "get_wmma_scale_layout",
    "load_shared_fp4_repacked",
    "make_partitioned_dot_layouts",
    "mbarrier",
    "scaled_upcast",
    "tdm",
    "wmma",
    "wmma_scaled",
]

_MISSING = only_on(
    "amd.cdna5",
    [
        "buffer_load",
        "buffer_store",
        "load_shared_fp4_repacked",
        "scaled_upcast",
        "wmma",
        "wmma_scaled",
    ],
    "hip:gfx1250",
)
buffer_load = _MISSING["buffer_load"]
buffer_store = _MISSING["buffer_store"]
load_shared_fp4_repacked = _MISSING["load_shared_fp4_repacked"]
scaled_upcast = _MISSING["scaled_upcast"]
wmma = _MISSING["wmma"]
wmma_scaled = _MISSING["wmma_scaled"]
takes_plain_values(get_wmma_scale_layout)
