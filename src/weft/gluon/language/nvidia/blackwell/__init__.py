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
from ..hopper import fence_async_shared, mbarrier
from . import float2, tma

__all__ = [
    "TensorMemoryLayout",
    "TensorMemoryScalesLayout",
    "allocate_tensor_memory",
    "async_copy",
    "fence_async_shared",
    "float2",
    "get_tmem_reg_layout",
    "mbarrier",
    "mma_v2",
    "tcgen05_commit",
    "tcgen05_copy",
    "tcgen05_mma",
    "tcgen05_mma_barrier_count",
    "tcgen05_mma_scaled",
    "tensor_memory_descriptor",
    "tma",
]

_MISSING = only_on(
    "blackwell",
    [
        "allocate_tensor_memory",
        "tcgen05_commit",
        "tcgen05_copy",
        "tcgen05_mma",
        "tcgen05_mma_barrier_count",
        "tcgen05_mma_scaled",
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
tensor_memory_descriptor = only_on("blackwell", ["tensor_memory_descriptor"], "cuda:100")["tensor_memory_descriptor"]


@takes_plain_values
def get_tmem_reg_layout(
    element_ty: Any, shape: Any, layout: Any, num_warps: Any, instr_variant: Any = "32x32b", cga_layout: Any = ()
) -> Any:
    """The layout in registers of what a load of tensor memory gives, or a store takes; see `weft.layouts`."""
    return _register_layout(element_ty, shape, layout, num_warps, instr_variant, cga_layout)
