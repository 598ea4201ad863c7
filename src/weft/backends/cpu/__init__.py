"""The CPU back end: tile IR to fused vector loops, through LLVM.

Read in this order: program (the kernel as light objects), coords (places in tiles), forms (how values look across
lanes), evaluate (pulling values), nest (loops), schedule (what goes into which loop), codegen (the whole).
"""

from weft.backends.cpu.codegen import CPUBinary, CPUOptions, compile_module

__all__ = ["CPUBinary", "CPUOptions", "compile_module"]
