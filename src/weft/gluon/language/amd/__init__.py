"""`gl.amd`: layouts of AMD's matrix instructions are there; the instructions say that they are not yet."""

from __future__ import annotations

from ..layouts import AMDMFMALayout, AMDWMMALayout
from . import cdna3, cdna4, cdna5, gfx1250, rdna3, rdna4
from .slice import slice
from .warp_pipeline import warp_pipeline_stage

__all__ = [
    "AMDMFMALayout",
    "AMDWMMALayout",
    "cdna3",
    "cdna4",
    "cdna5",
    "gfx1250",
    "rdna3",
    "rdna4",
    "slice",
    "warp_pipeline_stage",
]
