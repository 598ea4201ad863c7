"""`gl.extra`: libdevice."""

from weft.language.extra import libdevice

__all__ = ["libdevice"]
