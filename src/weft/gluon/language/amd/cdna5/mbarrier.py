"""`gl.amd.cdna5.mbarrier`: barriers in shared memory of gfx1250; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on
from ...layouts import MBarrierLayout as MBarrierLayout

_missing = _only_on("amd.cdna5.mbarrier", "hip:gfx1250")
arrive = _missing("arrive")
init = _missing("init")
wait = _missing("wait")

_publish(globals())
