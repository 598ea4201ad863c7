"""`gl.amd.cdna4`: what gfx950 has; not supported yet, but for the layout of scales."""

from __future__ import annotations

from weft.base import publish as _publish
from weft.layouts import mfma_scale_layout as get_mfma_scale_layout

from ....elsewhere import only_on as _only_on
from ...layouts import takes_plain_values as _takes_plain_values
from . import async_copy as async_copy

_missing = _only_on("amd.cdna4", "hip:gfx950")
buffer_atomic_add = _missing("buffer_atomic_add")
buffer_atomic_and = _missing("buffer_atomic_and")
buffer_atomic_max = _missing("buffer_atomic_max")
buffer_atomic_min = _missing("buffer_atomic_min")
buffer_atomic_or = _missing("buffer_atomic_or")
buffer_atomic_xchg = _missing("buffer_atomic_xchg")
buffer_atomic_xor = _missing("buffer_atomic_xor")
buffer_load = _missing("buffer_load")
buffer_store = _missing("buffer_store")
mfma = _missing("mfma")
mfma_scaled = _missing("mfma_scaled")
compute_efficient_padded_shared_layout = _missing("compute_efficient_padded_shared_layout")
load_shared_fp4_repacked = _missing("load_shared_fp4_repacked")
scaled_upcast = _missing("scaled_upcast")
_takes_plain_values(get_mfma_scale_layout)

_publish(globals(), modules="async_copy")
