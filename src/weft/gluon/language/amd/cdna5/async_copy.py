"""`gl.amd.cdna5.async_copy`: copies between global and shared memory of gfx1250; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "commit_group",
    "global_to_shared",
    "mbarrier_arrive",
    "shared_to_global",
    "wait_group",
]

_MISSING = only_on(
    "amd.cdna5.async_copy",
    [
        "commit_group",
        "global_to_shared",
        "mbarrier_arrive",
        "shared_to_global",
        "wait_group",
    ],
    "hip:gfx1250",
)
commit_group = _MISSING["commit_group"]
global_to_shared = _MISSING["global_to_shared"]
mbarrier_arrive = _MISSING["mbarrier_arrive"]
shared_to_global = _MISSING["shared_to_global"]
wait_group = _MISSING["wait_group"]
