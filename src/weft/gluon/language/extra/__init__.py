"""`gl.extra`: libdevice."""

from __future__ import annotations

from weft.language.extra import libdevice

__all__ = ["libdevice"]
