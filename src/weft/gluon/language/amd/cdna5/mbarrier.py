"""`gl.amd.cdna5.mbarrier`: barriers in shared memory of gfx1250; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on
from ...layouts import MBarrierLayout

__all__ = [
    "MBarrierLayout",
    "arrive",
    "init",
    "wait",
]

_MISSING = only_on(
    "amd.cdna5.mbarrier",
    [
        "arrive",
        "init",
        "wait",
    ],
    "hip:gfx1250",
)
arrive = _MISSING["arrive"]
init = _MISSING["init"]
wait = _MISSING["wait"]
