"""`gl.amd.rdna4`: wmma of gfx1200."""

from ..products import wmma_of as _wmma_of

__all__ = ["wmma"]

wmma = _wmma_of(2, "gfx1200 and gfx1201")
