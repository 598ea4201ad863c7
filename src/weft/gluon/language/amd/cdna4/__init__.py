"""`gl.amd.cdna4`: what gfx950 has: buffer operations, mfma, mfma_scaled and the layout of its scales, copies."""

from weft.base import publish as _publish
from weft.layouts import mfma_scale_layout as get_mfma_scale_layout

from ....elsewhere import unsupported as _unsupported
from ...layouts import takes_plain_values as _takes_plain_values
from ..buffers import atomics as _atomics, buffer_load as buffer_load, buffer_store as buffer_store
from ..products import mfma as mfma
from ..scaled import mfma_scaled as mfma_scaled
from . import async_copy as async_copy

_takes_plain_values(get_mfma_scale_layout)
_atomics(globals(), "amd.cdna4", adds_bf16=True)
__getattr__ = _unsupported(
    globals(),
    "amd.cdna4",
    "hip:gfx950",
    "compute_efficient_padded_shared_layout load_shared_fp4_repacked scaled_upcast",
)
_publish(globals(), modules="async_copy")
