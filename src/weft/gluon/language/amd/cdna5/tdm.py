"""`gl.amd.cdna5.tdm`: copies of blocks of tensors on gfx1250; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.cdna5.tdm", "hip:gfx1250")
async_gather = _missing("async_gather")
async_load = _missing("async_load")
async_load_fused = _missing("async_load_fused")
async_scatter = _missing("async_scatter")
async_store = _missing("async_store")
async_wait = _missing("async_wait")
make_tensor_descriptor = _missing("make_tensor_descriptor")
prefetch = _missing("prefetch")
tensor_descriptor = _missing("tensor_descriptor")
tensor_descriptor_type = _missing("tensor_descriptor_type")
update_tensor_descriptor = _missing("update_tensor_descriptor")

_publish(globals())
