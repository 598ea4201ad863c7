"""`gl.amd.rdna3`: wmma of gfx1100; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.rdna3", "hip:gfx1100")
wmma = _missing("wmma")

_publish(globals())
