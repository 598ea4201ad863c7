"""`gl.amd.cdna5.cluster`: blocks of a cluster of gfx1250 wait for each other; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "arrive",
    "wait",
]

_MISSING = only_on(
    "amd.cdna5.cluster",
    [
        "arrive",
        "wait",
    ],
    "hip:gfx1250",
)
arrive = _MISSING["arrive"]
wait = _MISSING["wait"]
