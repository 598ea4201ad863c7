"""triton.tools.tensor_descriptor."""

from weft.runtime import TensorDescriptor as TensorDescriptor
