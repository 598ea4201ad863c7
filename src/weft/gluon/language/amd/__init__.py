"""`gl.amd`: layouts and instructions of AMD's GPUs, by processor.

>>> layout = gl.amd.AMDMFMALayout(version=3, instr_shape=[32, 32, 8], transposed=True, warps_per_cta=[2, 2])
>>> layout.to_linear([64, 64]).bases["warp"]
((0, 32), (32, 0))
"""

from weft.base import publish as _publish

from ..layouts import AMDMFMALayout as AMDMFMALayout, AMDWMMALayout as AMDWMMALayout
from . import cdna3 as cdna3, cdna4 as cdna4, cdna5 as cdna5, gfx1250 as gfx1250, rdna3 as rdna3, rdna4 as rdna4
from .slice import slice as slice
from .warp_pipeline import warp_pipeline_stage as warp_pipeline_stage

_publish(globals(), modules="cdna3 cdna4 cdna5 gfx1250 rdna3 rdna4")
