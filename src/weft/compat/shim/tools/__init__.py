"""triton.tools."""

from weft.layouts import LinearLayout

from . import mxfp, tensor_descriptor

__all__ = ["LinearLayout", "mxfp", "tensor_descriptor"]
