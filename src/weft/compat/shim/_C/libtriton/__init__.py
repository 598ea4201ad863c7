"""triton._C.libtriton: of Triton's compiled library, the functions that are no passes."""

from weft.runtime.specialize import native_specialize_impl

from . import gluon_ir, ir, nvidia

__all__ = ["gluon_ir", "ir", "native_specialize_impl", "nvidia"]
