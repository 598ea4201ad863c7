"""`gl.amd.rdna4`: wmma of gfx1200; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(globals(), "amd.rdna4", "hip:gfx1200", "wmma")
