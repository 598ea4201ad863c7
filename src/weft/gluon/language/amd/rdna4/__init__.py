"""`gl.amd.rdna4`: wmma of gfx1200; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.rdna4", "hip:gfx1200")
wmma = _missing("wmma")

_publish(globals())
