"""`gl.amd.cdna3`: buffer operations and mfma of gfx942; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(
    globals(),
    "amd.cdna3",
    "hip:gfx942",
    "buffer_atomic_add buffer_atomic_and buffer_atomic_max buffer_atomic_min buffer_atomic_or buffer_atomic_xchg "
    "buffer_atomic_xor buffer_load buffer_store mfma scaled_upcast",
)
