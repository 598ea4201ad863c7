"""`gl.amd.slice`: a part of a tile in the registers of its threads; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ...elsewhere import only_on as _only_on

_missing = _only_on("amd", "hip")
slice = _missing("slice")

_publish(globals())
