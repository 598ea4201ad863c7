"""`gl.nvidia.hopper`: matrix products of warp groups, bulk tensor copies, fences (sm_90 and later)."""

from __future__ import annotations

from ....elsewhere import only_on
from ..ampere import async_copy, mma_v2
from . import cluster, mbarrier, tma
from .wgmma import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_accumulator,
    warpgroup_mma_accumulator_type,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

async_store = only_on(
    "hopper", ["async_store"], "later versions of Triton than 3.6", {"async_store": "memory.store(value)"}
)["async_store"]

__all__ = [
    "async_copy",
    "async_store",
    "cluster",
    "fence_async_shared",
    "mbarrier",
    "mma_v2",
    "tma",
    "warpgroup_mma",
    "warpgroup_mma_accumulator",
    "warpgroup_mma_accumulator_type",
    "warpgroup_mma_init",
    "warpgroup_mma_wait",
]
