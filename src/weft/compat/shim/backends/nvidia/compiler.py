"""triton.backends.nvidia.compiler."""

from ..compiler import CUDABackend

__all__ = ["CUDABackend"]
