"""`blackwell.float2`: two float32 in one instruction; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("blackwell.float2", "cuda:100", {"fma": "gl.fma takes two float32 one after the other"})
Float2Tensor = _missing("Float2Tensor")
fma = _missing("fma")
full_like = _missing("full_like")
pack = _missing("pack")
pack2 = _missing("pack2")
unpack = _missing("unpack")
unpack2 = _missing("unpack2")

_publish(globals())
