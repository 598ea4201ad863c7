"""triton.backends.nvidia.compiler."""

from ..compiler import CUDABackend as CUDABackend
