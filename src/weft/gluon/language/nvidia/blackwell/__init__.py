"""`gl.nvidia.blackwell`: layouts of tensor memory are there; what computes in tensor memory says that it is not yet.

What Ampere and Hopper have, Blackwell has too.
"""

from __future__ import annotations

from typing import Any

from weft.layouts import TensorMemoryLayout, TensorMemoryScalesLayout
from weft.layouts import get_tmem_reg_layout as _register_layout

from ....elsewhere import only_on
from ...layouts import takes_plain_values
from ..ampere import async_copy, mma_v2
from ..hopper import async_store, cluster, fence_async_shared, mbarrier
from . import clc, float2, tma

__all__ = [
    "TensorMemoryLayout",
    "TensorMemoryScalesLayout",
    "add2",
    "allocate_tensor_memory",
    "async_copy",
    "async_store",
    "clc",
    "cluster",
    "fence_async_shared",
    "float2",
    "fma2",
    "get_tmem_reg_layout",
    "max2",
    "mbarrier",
    "min2",
    "mma_v2",
    "mul2",
    "sub2",
    "tcgen05_commit",
    "tcgen05_copy",
    "tcgen05_mma",
    "tcgen05_mma_barrier_count",
    "tcgen05_mma_scaled",
    "tensor_memory_descriptor",
    "tensor_memory_descriptor_type",
    "tma",
]

_MISSING = only_on(
    "blackwell",
    [
        "add2",
        "allocate_tensor_memory",
        "fma2",
        "max2",
        "min2",
        "mul2",
        "sub2",
        "tcgen05_commit",
        "tcgen05_copy",
        "tcgen05_mma",
        "tcgen05_mma_barrier_count",
        "tcgen05_mma_scaled",
        "tensor_memory_descriptor",
        "tensor_memory_descriptor_type",
    ],
    "cuda:100",
    {"tcgen05_mma": "on cuda:90 there is hopper.warpgroup_mma, on cuda:80 ampere.mma_v2"},
)
allocate_tensor_memory = _MISSING["allocate_tensor_memory"]
tcgen05_commit = _MISSING["tcgen05_commit"]
tcgen05_copy = _MISSING["tcgen05_copy"]
tcgen05_mma = _MISSING["tcgen05_mma"]
tcgen05_mma_barrier_count = _MISSING["tcgen05_mma_barrier_count"]
tcgen05_mma_scaled = _MISSING["tcgen05_mma_scaled"]
tensor_memory_descriptor = _MISSING["tensor_memory_descriptor"]
tensor_memory_descriptor_type = _MISSING["tensor_memory_descriptor_type"]
add2 = _MISSING["add2"]
fma2 = _MISSING["fma2"]
max2 = _MISSING["max2"]
min2 = _MISSING["min2"]
mul2 = _MISSING["mul2"]
sub2 = _MISSING["sub2"]


@takes_plain_values
def get_tmem_reg_layout(
    element_ty: Any, shape: Any, layout: Any, num_warps: Any, instr_variant: Any = "32x32b", cga_layout: Any = ()
) -> Any:
    """The layout in registers of what a load of tensor memory gives, or a store takes; see `weft.layouts`."""
    return _register_layout(element_ty, shape, layout, num_warps, instr_variant, cga_layout)
