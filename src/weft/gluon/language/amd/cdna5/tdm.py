"""`gl.amd.cdna5.tdm`: copies of blocks of tensors on gfx1250; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(
    globals(),
    "amd.cdna5.tdm",
    "hip:gfx1250",
    "async_gather async_load async_load_fused async_scatter async_store async_wait make_tensor_descriptor prefetch "
    "tensor_descriptor tensor_descriptor_type update_tensor_descriptor",
)
