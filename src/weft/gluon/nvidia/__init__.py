"""What programs of the host use with Gluon kernels for NVIDIA's GPUs."""

from __future__ import annotations

from . import blackwell, hopper

__all__ = ["blackwell", "hopper"]
