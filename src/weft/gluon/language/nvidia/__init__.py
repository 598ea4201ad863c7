"""`gl.nvidia`: what NVIDIA's GPUs have, by generation; what a generation has, the later ones have too.

>>> [hasattr(generation, "mma_v2") for generation in (gl.nvidia.ampere, gl.nvidia.hopper)]
[True, True]
>>> [hasattr(generation, "tma") for generation in (gl.nvidia.ampere, gl.nvidia.hopper)]
[False, True]
"""

from . import ampere, blackwell, hopper, rubin

__all__ = ["ampere", "blackwell", "hopper", "rubin"]
