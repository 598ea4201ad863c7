"""`gl.extra`: libdevice, the mathematical functions beyond those of `gl`.

>>> evaluate("gl.extra.libdevice.rsqrt(x)", x=[4.0, 16.0])
array([0.5 , 0.25], dtype=float32)
"""

from weft.language.extra import libdevice

from . import descriptors as descriptors, programs as programs, rows as rows

__all__ = ["libdevice"]
