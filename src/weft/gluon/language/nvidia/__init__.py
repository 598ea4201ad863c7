"""`gl.nvidia`: what NVIDIA's GPUs have, by generation; what a generation has, the later ones have too."""

from . import ampere, blackwell, hopper, rubin

__all__ = ["ampere", "blackwell", "hopper", "rubin"]
