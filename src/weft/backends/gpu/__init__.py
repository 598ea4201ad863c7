"""What all GPUs share: a lane program as LLVM IR, which a vendor's own instructions complete.

`emit(program)` gives the artefact with what a launch needs to know (`emission` says what the ABI of kernels is). Back
ends never see a layout: everything is decided when the lane program is made.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .emission import Emitted, emit, emit_llvm, emitted_of

__all__ = ["Emitted", "emit", "emit_llvm", "emitted_of"]

__getattr__ = lazy_face(__name__, {"emission": "Emitted emit emit_llvm emitted_of"})
