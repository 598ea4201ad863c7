"""NVIDIA GPUs: LLVM IR to PTX, PTX to machine code, and the CUDA driver."""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .machine import PTXTarget, assembly, begin, ptx_target

__all__ = ["PTXTarget", "assembly", "begin", "ptx_target"]

__getattr__ = lazy_face(__name__, {"machine": "PTXTarget assembly begin ptx_target"})
