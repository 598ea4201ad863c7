"""`gl.nvidia`: what NVIDIA's GPUs have, by generation; what a generation has, the later ones have too."""

from __future__ import annotations

from . import ampere, blackwell, hopper, rubin

__all__ = ["ampere", "blackwell", "hopper", "rubin"]
