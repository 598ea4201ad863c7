"""`gl.amd.rdna4`: wmma of gfx1200; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "wmma",
]

_MISSING = only_on(
    "amd.rdna4",
    [
        "wmma",
    ],
    "hip:gfx1200",
)
wmma = _MISSING["wmma"]
