"""`gl.amd.slice`: a part of a tile in the registers of its threads; not supported yet."""

from __future__ import annotations

from ...elsewhere import only_on

__all__ = [
    "slice",
]

_MISSING = only_on(
    "amd",
    [
        "slice",
    ],
    "hip",
)
slice = _MISSING["slice"]
