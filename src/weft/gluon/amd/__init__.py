"""What programs of the host use with Gluon kernels for AMD's GPUs."""

from . import cdna5, gfx1250

__all__ = ["cdna5", "gfx1250"]
