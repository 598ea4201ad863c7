"""`gl.amd.rdna3`: wmma of gfx1100; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(globals(), "amd.rdna3", "hip:gfx1100", "wmma")
