"""`gl.amd.gfx1250`: the name of `gl.amd.cdna5` before Triton 3.8."""

from __future__ import annotations

from .. import cdna5
from ..cdna5 import *
from ..cdna5 import __all__ as __all__

__path__ = cdna5.__path__
"""The modules within are those of `cdna5` too."""
