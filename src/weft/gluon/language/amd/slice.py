"""`gl.amd.slice`: a part of a tile in the registers of its threads; not supported yet."""

from ...elsewhere import unsupported_builtin

slice = unsupported_builtin("amd.slice", "hip")

__all__ = ["slice"]
