"""triton.tools."""

from weft.layouts import LinearLayout

from . import disasm, mxfp, ragged_tma, tensor_descriptor

__all__ = ["LinearLayout", "disasm", "mxfp", "ragged_tma", "tensor_descriptor"]
