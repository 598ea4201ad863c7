"""`gl.amd.cdna4.async_copy`: copies from global to shared memory of gfx950; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.cdna4.async_copy", "hip:gfx950")
buffer_load_to_shared = _missing("buffer_load_to_shared")
commit_group = _missing("commit_group")
global_load_to_shared = _missing("global_load_to_shared")
load_shared_relaxed = _missing("load_shared_relaxed")
wait_group = _missing("wait_group")

_publish(globals())
