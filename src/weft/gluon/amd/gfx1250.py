"""The name of `cdna5` before Triton 3.8."""

from .cdna5 import TensorDescriptor

__all__ = ["TensorDescriptor"]
