"""NVIDIA GPUs: the dialect of PTX, LLVM IR to PTX, PTX to machine code, and the CUDA driver."""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .dialect import PTX
    from .emission import emit
    from .machine import PTXTarget, assembly, begin, ptx_target

__all__ = ["PTX", "PTXTarget", "assembly", "begin", "emit", "ptx_target"]

__getattr__ = lazy_face(
    __name__,
    {"dialect": "PTX", "emission": "emit", "machine": "PTXTarget assembly begin ptx_target"},
)
