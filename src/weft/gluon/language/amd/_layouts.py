"""AMD's layouts, under the name of the module that has them in Triton."""

from ..layouts import AMDMFMALayout, AMDWMMALayout

__all__ = ["AMDMFMALayout", "AMDWMMALayout"]
