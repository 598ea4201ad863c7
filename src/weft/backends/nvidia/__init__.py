"""NVIDIA GPUs: a lane program to PTX, by LLVM.

`emit(program)` gives the PTX with what a launch needs to know (`emission` says what the ABI of kernels is). Backends
never see a layout: everything is decided when the lane program is made.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .emission import Emitted, emit, emit_llvm, emitted_of
    from .machine import PTXTarget, assembly, begin, ptx_target

__all__ = ["Emitted", "PTXTarget", "assembly", "begin", "emit", "emit_llvm", "emitted_of", "ptx_target"]

__getattr__ = lazy_face(
    __name__, {"emission": "Emitted emit emit_llvm emitted_of", "machine": "PTXTarget assembly begin ptx_target"}
)
