"""`gl.amd.gfx1250.tdm`: copies of blocks of tensors by the tensor data mover (../tensors.py)."""

from ....elsewhere import unsupported as _unsupported
from ..tensors import (
    async_load as async_load,
    async_store as async_store,
    async_wait as async_wait,
    make_tensor_descriptor as make_tensor_descriptor,
    tensor_descriptor as tensor_descriptor,
    tensor_descriptor_type as tensor_descriptor_type,
)

__getattr__ = _unsupported(
    globals(),
    "amd.cdna5.tdm",
    "hip:gfx1250",
    "async_gather async_load_fused async_scatter prefetch update_tensor_descriptor",
)
