"""`gl.nvidia.rubin`: the generation after Blackwell; what Blackwell does not have says that it is not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on
from ..blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    add2,
    allocate_tensor_memory,
    async_copy,
    async_store,
    clc,
    cluster,
    fence_async_shared,
    fma2,
    max2,
    min2,
    mma_v2,
    mul2,
    sub2,
    tcgen05_commit,
    tcgen05_copy,
    tcgen05_mma,
    tcgen05_mma_barrier_count,
    tcgen05_mma_scaled,
    tensor_memory_descriptor,
    tensor_memory_descriptor_type,
    tma,
)
from . import mbarrier

__all__ = [
    "TensorMemoryLayout",
    "TensorMemoryScalesLayout",
    "add2",
    "add4",
    "allocate_tensor_memory",
    "async_copy",
    "async_store",
    "clc",
    "cluster",
    "fence_async_shared",
    "fma2",
    "fma4",
    "max2",
    "mbarrier",
    "min2",
    "mma_v2",
    "mul2",
    "mul4",
    "sub2",
    "sub4",
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
    "rubin",
    [
        "add4",
        "fma4",
        "mul4",
        "sub4",
    ],
    "cuda:107",
)
add4 = _MISSING["add4"]
fma4 = _MISSING["fma4"]
mul4 = _MISSING["mul4"]
sub4 = _MISSING["sub4"]
