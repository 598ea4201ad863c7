"""`gl.amd`: layouts of AMD's matrix instructions are there; the instructions say that they are not yet."""

from weft.base import publish as _publish

from ..layouts import AMDMFMALayout as AMDMFMALayout, AMDWMMALayout as AMDWMMALayout
from . import cdna3 as cdna3, cdna4 as cdna4, cdna5 as cdna5, gfx1250 as gfx1250, rdna3 as rdna3, rdna4 as rdna4
from .slice import slice as slice
from .warp_pipeline import warp_pipeline_stage as warp_pipeline_stage

_publish(globals(), modules="cdna3 cdna4 cdna5 gfx1250 rdna3 rdna4")
