"""`gl.amd.cdna3`: buffer operations and mfma of gfx942; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "buffer_atomic_add",
    "buffer_atomic_and",
    "buffer_atomic_max",
    "buffer_atomic_min",
    "buffer_atomic_or",
    "buffer_atomic_xchg",
    "buffer_atomic_xor",
    "buffer_load",
    "buffer_store",
    "mfma",
    "scaled_upcast",
]

_MISSING = only_on(
    "amd.cdna3",
    __all__,
    "hip:gfx942",
)
buffer_atomic_add = _MISSING["buffer_atomic_add"]
buffer_atomic_and = _MISSING["buffer_atomic_and"]
buffer_atomic_max = _MISSING["buffer_atomic_max"]
buffer_atomic_min = _MISSING["buffer_atomic_min"]
buffer_atomic_or = _MISSING["buffer_atomic_or"]
buffer_atomic_xchg = _MISSING["buffer_atomic_xchg"]
buffer_atomic_xor = _MISSING["buffer_atomic_xor"]
buffer_load = _MISSING["buffer_load"]
buffer_store = _MISSING["buffer_store"]
mfma = _MISSING["mfma"]
scaled_upcast = _MISSING["scaled_upcast"]
