"""`gl.amd.warp_pipeline_stage`: a stage of a pipeline of warps in a loop; not supported yet."""

from ...elsewhere import unsupported_builtin

warp_pipeline_stage = unsupported_builtin("amd.warp_pipeline_stage", "hip")

__all__ = ["warp_pipeline_stage"]
