"""`gl.amd.gfx1250`: the name of `gl.amd.cdna5` before Triton 3.8."""

from weft.base import publish as _publish

from .. import cdna5
from ..cdna5 import *
from ..cdna5 import __getattr__ as __getattr__

_publish(globals(), modules="async_copy cluster mbarrier tdm")

__path__ = cdna5.__path__
"""The modules within are those of `cdna5` too."""
