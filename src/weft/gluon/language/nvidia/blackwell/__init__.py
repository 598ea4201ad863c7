"""`gl.nvidia.blackwell`: layouts of tensor memory are there; what computes in tensor memory says that it is not yet.

What Ampere and Hopper have, Blackwell has too.
"""

from __future__ import annotations

from typing import Any as _Any

from weft.layouts import (
    TensorMemoryLayout as TensorMemoryLayout,
    TensorMemoryScalesLayout as TensorMemoryScalesLayout,
    get_tmem_reg_layout as _register_layout,
)

from ....elsewhere import unsupported as _unsupported
from ...layouts import takes_plain_values as _takes_plain_values
from ..ampere import async_copy as async_copy, mma_v2 as mma_v2
from ..hopper import (
    async_store as async_store,
    cluster as cluster,
    fence_async_shared as fence_async_shared,
    mbarrier as mbarrier,
)
from . import clc as clc, float2 as float2, tma as tma

_INSTEAD = {"tcgen05_mma": "on cuda:90 there is hopper.warpgroup_mma, on cuda:80 ampere.mma_v2"}


@_takes_plain_values
def get_tmem_reg_layout(
    element_ty: _Any, shape: _Any, layout: _Any, num_warps: _Any, instr_variant: _Any = "32x32b", cga_layout: _Any = ()
) -> _Any:
    """The layout in registers of what a load of tensor memory gives, or a store takes; see `weft.layouts`."""
    return _register_layout(element_ty, shape, layout, num_warps, instr_variant, cga_layout)


__getattr__ = _unsupported(
    globals(),
    "blackwell",
    "cuda:100",
    "allocate_tensor_memory tcgen05_commit tcgen05_copy tcgen05_mma tcgen05_mma_barrier_count tcgen05_mma_scaled "
    "tensor_memory_descriptor tensor_memory_descriptor_type add2 fma2 max2 min2 mul2 sub2",
    modules="async_copy clc cluster float2 mbarrier tma",
    instead=_INSTEAD,
)
