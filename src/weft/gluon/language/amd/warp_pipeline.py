"""`gl.amd.warp_pipeline_stage`: a stage of a pipeline of warps in a loop; not supported yet."""

from __future__ import annotations

from ...elsewhere import only_on

__all__ = [
    "warp_pipeline_stage",
]

_MISSING = only_on(
    "amd",
    [
        "warp_pipeline_stage",
    ],
    "hip",
)
warp_pipeline_stage = _MISSING["warp_pipeline_stage"]
