"""`gl.amd.cdna4`: what gfx950 has; not supported yet, but for the layout of scales."""

from weft.layouts import mfma_scale_layout as get_mfma_scale_layout

from ....elsewhere import unsupported as _unsupported
from ...layouts import takes_plain_values as _takes_plain_values
from . import async_copy as async_copy

_takes_plain_values(get_mfma_scale_layout)

__getattr__ = _unsupported(
    globals(),
    "amd.cdna4",
    "hip:gfx950",
    "buffer_atomic_add buffer_atomic_and buffer_atomic_max buffer_atomic_min buffer_atomic_or buffer_atomic_xchg "
    "buffer_atomic_xor buffer_load buffer_store mfma mfma_scaled compute_efficient_padded_shared_layout "
    "load_shared_fp4_repacked scaled_upcast",
    modules="async_copy",
)
