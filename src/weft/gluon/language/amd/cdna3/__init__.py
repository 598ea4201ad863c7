"""`gl.amd.cdna3`: buffer operations and mfma of gfx942."""

from weft.base import publish as _publish

from ....elsewhere import unsupported as _unsupported
from ..buffers import atomics as _atomics, buffer_load as buffer_load, buffer_store as buffer_store
from ..products import mfma as mfma

_atomics(globals(), "amd.cdna3", adds_bf16=False)
__getattr__ = _unsupported(globals(), "amd.cdna3", "hip:gfx942", "scaled_upcast")
_publish(globals())
