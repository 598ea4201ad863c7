"""`blackwell.tma`: bulk copies as on Hopper; gathers and scatters of rows are for Blackwell alone."""

from __future__ import annotations

from ....elsewhere import only_on
from ..hopper.tma import (
    async_atomic_add,
    async_atomic_and,
    async_atomic_max,
    async_atomic_min,
    async_atomic_or,
    async_atomic_xor,
    async_copy_global_to_shared,
    async_copy_global_to_shared_im2col,
    async_copy_shared_to_global,
    async_load,
    async_load_im2col,
    async_store,
    make_tensor_descriptor,
    store_wait,
    tensor_descriptor,
    tensor_descriptor_type,
)

__all__ = [
    "async_atomic_add",
    "async_atomic_and",
    "async_atomic_max",
    "async_atomic_min",
    "async_atomic_or",
    "async_atomic_xor",
    "async_copy_global_to_shared_im2col",
    "async_load_im2col",
    "async_copy_global_to_shared",
    "async_copy_shared_to_global",
    "async_gather",
    "async_load",
    "async_scatter",
    "async_store",
    "make_tensor_descriptor",
    "store_wait",
    "tensor_descriptor",
    "tensor_descriptor_type",
]

_MISSING = only_on("blackwell.tma", ["async_gather", "async_scatter"], "cuda:100")
async_gather = _MISSING["async_gather"]
async_scatter = _MISSING["async_scatter"]
