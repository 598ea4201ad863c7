"""`gl.amd.cdna5.async_copy`: copies between global and shared memory of gfx1250; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.cdna5.async_copy", "hip:gfx1250")
commit_group = _missing("commit_group")
global_to_shared = _missing("global_to_shared")
mbarrier_arrive = _missing("mbarrier_arrive")
shared_to_global = _missing("shared_to_global")
wait_group = _missing("wait_group")

_publish(globals())
