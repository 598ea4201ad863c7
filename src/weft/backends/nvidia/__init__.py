"""NVIDIA GPUs: a lane program to PTX, by LLVM.

`emit(program)` gives the PTX with what a launch needs to know (emit.py says what the kernel's ABI is). Backends never
see a layout: everything is decided when the lane program is made.
"""

from .emit import Emitted, emit, emit_llvm, emitted_of
from .machine import PTXTarget, assembly, ptx_target

__all__ = ["Emitted", "PTXTarget", "assembly", "emit", "emit_llvm", "emitted_of", "ptx_target"]
