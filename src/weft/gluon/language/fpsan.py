"""`gl.fpsan`: floats embedded in a ring of integers by a checker of Triton 3.8; Weft has no such checker."""

from __future__ import annotations

from weft.base import publish as _publish

from ..elsewhere import only_on as _only_on

_missing = _only_on("fpsan", "Triton's floating-point sanitizer")
embed = _missing("embed")
unembed = _missing("unembed")

_publish(globals())
