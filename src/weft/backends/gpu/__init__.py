"""What all GPUs share: a lane program as LLVM IR, in which a vendor's `Dialect` writes what is its own.

Back ends never see a layout: everything is decided when the lane program is made.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

if TYPE_CHECKING:
    from .dialect import Dialect
    from .emission import Emitted, emit_llvm, emitted_of

__all__ = ["Dialect", "Emitted", "emit_llvm", "emitted_of"]

__getattr__ = lazy_face(__name__, {"dialect": "Dialect", "emission": "Emitted emit_llvm emitted_of"})
