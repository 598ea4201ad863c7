"""triton.tools."""

from . import mxfp, tensor_descriptor

__all__ = ["mxfp", "tensor_descriptor"]
