"""`gl.nvidia.hopper`: matrix products of warp groups, bulk tensor copies, fences (sm_90 and later)."""

from weft.base import publish as _publish

from ..ampere import async_copy as async_copy, mma_v2 as mma_v2
from . import cluster as cluster, mbarrier as mbarrier, tma as tma, turns as turns
from .sent import async_store as async_store
from .wgmma import (
    fence_async_shared as fence_async_shared,
    warpgroup_mma as warpgroup_mma,
    warpgroup_mma_accumulator as warpgroup_mma_accumulator,
    warpgroup_mma_accumulator_type as warpgroup_mma_accumulator_type,
    warpgroup_mma_init as warpgroup_mma_init,
    warpgroup_mma_wait as warpgroup_mma_wait,
)

_publish(globals(), modules="async_copy cluster mbarrier tma turns")
