"""What programs of the host use with Gluon kernels for AMD's GPUs."""

from __future__ import annotations

from . import gfx1250

__all__ = ["gfx1250"]
