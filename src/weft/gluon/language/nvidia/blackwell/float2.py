"""`blackwell.float2`: two float32 in one instruction; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = ["Float2Tensor", "fma", "full_like", "pack", "pack2", "unpack", "unpack2"]

_MISSING = only_on(
    "blackwell.float2",
    __all__,
    "cuda:100",
    {"fma": "gl.fma takes two float32 one after the other"},
)
Float2Tensor = _MISSING["Float2Tensor"]
fma = _MISSING["fma"]
full_like = _MISSING["full_like"]
pack = _MISSING["pack"]
pack2 = _MISSING["pack2"]
unpack = _MISSING["unpack"]
unpack2 = _MISSING["unpack2"]
