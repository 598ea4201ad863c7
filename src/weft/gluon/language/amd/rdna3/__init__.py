"""`gl.amd.rdna3`: wmma of gfx1100."""

from ..products import wmma_of as _wmma_of

__all__ = ["wmma"]

wmma = _wmma_of(1, "gfx1100 and its like")
