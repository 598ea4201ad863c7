"""`gl.fpsan`: floats embedded in a ring of integers by a checker of Triton 3.8; Weft has no such checker."""

from ..elsewhere import unsupported as _unsupported

__getattr__ = _unsupported(globals(), "fpsan", "Triton's floating-point sanitizer", "embed unembed")
