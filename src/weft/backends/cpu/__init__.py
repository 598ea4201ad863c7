"""The CPU back end: tile IR to fused vector loops, through LLVM.

Read in this order: program (the kernel as light objects), coords (places in tiles), forms (how values look across
lanes), evaluate (pulling values), nest (loops), schedule (what goes into which loop), codegen (the whole).

What makes code is loaded when it is first used: a process whose kernels are all in the cache needs `driver` alone.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .codegen import CPUBinary, assembly, compile_module
    from .options import CPUOptions

__all__ = ["CPUBinary", "CPUOptions", "assembly", "compile_module"]

__getattr__ = lazy_face(__name__, {"codegen": "CPUBinary assembly compile_module", "options": "CPUOptions"})
