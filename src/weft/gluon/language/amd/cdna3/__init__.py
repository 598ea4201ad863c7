"""`gl.amd.cdna3`: buffer operations and mfma of gfx942; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.cdna3", "hip:gfx942")
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
scaled_upcast = _missing("scaled_upcast")

_publish(globals())
