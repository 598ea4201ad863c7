"""`gl.nvidia.hopper`: matrix products of warp groups, bulk tensor copies, fences (sm_90 and later)."""

from __future__ import annotations

from ..ampere import async_copy, mma_v2
from . import cluster, mbarrier, tma
from .sent import async_store
from .wgmma import (
    fence_async_shared,
    warpgroup_mma,
    warpgroup_mma_accumulator,
    warpgroup_mma_accumulator_type,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)

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
