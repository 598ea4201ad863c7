"""`gl.amd.cdna5.tdm`: copies of blocks of tensors on gfx1250; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "async_gather",
    "async_load",
    "async_load_fused",
    "async_scatter",
    "async_store",
    "async_wait",
    "make_tensor_descriptor",
    "prefetch",
    "tensor_descriptor",
    "tensor_descriptor_type",
    "update_tensor_descriptor",
]

_MISSING = only_on(
    "amd.cdna5.tdm",
    [
        "async_gather",
        "async_load",
        "async_load_fused",
        "async_scatter",
        "async_store",
        "async_wait",
        "make_tensor_descriptor",
        "prefetch",
        "tensor_descriptor",
        "tensor_descriptor_type",
        "update_tensor_descriptor",
    ],
    "hip:gfx1250",
)
async_gather = _MISSING["async_gather"]
async_load = _MISSING["async_load"]
async_load_fused = _MISSING["async_load_fused"]
async_scatter = _MISSING["async_scatter"]
async_store = _MISSING["async_store"]
async_wait = _MISSING["async_wait"]
make_tensor_descriptor = _MISSING["make_tensor_descriptor"]
prefetch = _MISSING["prefetch"]
tensor_descriptor = _MISSING["tensor_descriptor"]
tensor_descriptor_type = _MISSING["tensor_descriptor_type"]
update_tensor_descriptor = _MISSING["update_tensor_descriptor"]
