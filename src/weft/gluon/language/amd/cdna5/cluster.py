"""`gl.amd.cdna5.cluster`: blocks of a cluster of gfx1250 wait for each other; not supported yet."""

from ....elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(globals(), "amd.cdna5.cluster", "hip:gfx1250", "arrive wait")
