"""`gl.amd.cdna5.cluster`: blocks of a cluster of gfx1250 wait for each other; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ....elsewhere import only_on as _only_on

_missing = _only_on("amd.cdna5.cluster", "hip:gfx1250")
arrive = _missing("arrive")
wait = _missing("wait")

_publish(globals())
