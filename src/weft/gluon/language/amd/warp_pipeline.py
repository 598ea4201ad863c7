"""`gl.amd.warp_pipeline_stage`: a stage of a pipeline of warps in a loop; not supported yet."""

from __future__ import annotations

from weft.base import publish as _publish

from ...elsewhere import only_on as _only_on

_missing = _only_on("amd", "hip")
warp_pipeline_stage = _missing("warp_pipeline_stage")

_publish(globals())
