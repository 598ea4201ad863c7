"""triton.tools."""

from weft.layouts import LinearLayout

from . import mxfp, ragged_tma, tensor_descriptor

__all__ = ["LinearLayout", "mxfp", "ragged_tma", "tensor_descriptor"]
