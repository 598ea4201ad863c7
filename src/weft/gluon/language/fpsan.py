"""`gl.fpsan`: floats embedded in a ring of integers by a checker of Triton 3.8; Weft has no such checker."""

from __future__ import annotations

from ..elsewhere import only_on

__all__ = [
    "embed",
    "unembed",
]

_MISSING = only_on(
    "fpsan",
    [
        "embed",
        "unembed",
    ],
    "Triton's floating-point sanitizer",
)
embed = _MISSING["embed"]
unembed = _MISSING["unembed"]
