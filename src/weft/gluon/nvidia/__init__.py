"""What programs of the host use with Gluon kernels for NVIDIA's GPUs."""

from . import blackwell, hopper

__all__ = ["blackwell", "hopper"]
