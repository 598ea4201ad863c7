"""`gl.amd.gfx1250.tdm`: copies of blocks of tensors; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "async_load",
    "async_store",
    "async_wait",
    "make_tensor_descriptor",
    "tensor_descriptor",
    "tensor_descriptor_type",
]

_MISSING = only_on(
    "amd.gfx1250.tdm",
    [
        "async_load",
        "async_store",
        "async_wait",
        "make_tensor_descriptor",
        "tensor_descriptor",
        "tensor_descriptor_type",
    ],
    "hip:gfx1250",
)
async_load = _MISSING["async_load"]
async_store = _MISSING["async_store"]
async_wait = _MISSING["async_wait"]
make_tensor_descriptor = _MISSING["make_tensor_descriptor"]
tensor_descriptor = _MISSING["tensor_descriptor"]
tensor_descriptor_type = _MISSING["tensor_descriptor_type"]
