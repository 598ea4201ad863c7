"""`gl.amd.rdna3`: wmma of gfx1100; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "wmma",
]

_MISSING = only_on(
    "amd.rdna3",
    [
        "wmma",
    ],
    "hip:gfx1100",
)
wmma = _MISSING["wmma"]
