"""`gl.amd.cdna4.async_copy`: copies from global to shared memory of gfx950; not supported yet."""

from __future__ import annotations

from ....elsewhere import only_on

__all__ = [
    "buffer_load_to_shared",
    "commit_group",
    "global_load_to_shared",
    "load_shared_relaxed",
    "wait_group",
]

_MISSING = only_on(
    "amd.cdna4.async_copy",
    [
        "buffer_load_to_shared",
        "commit_group",
        "global_load_to_shared",
        "load_shared_relaxed",
        "wait_group",
    ],
    "hip:gfx950",
)
buffer_load_to_shared = _MISSING["buffer_load_to_shared"]
commit_group = _MISSING["commit_group"]
global_load_to_shared = _MISSING["global_load_to_shared"]
load_shared_relaxed = _MISSING["load_shared_relaxed"]
wait_group = _MISSING["wait_group"]
