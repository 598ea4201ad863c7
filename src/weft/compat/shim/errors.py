"""triton.errors."""

from weft.runtime.errors import TritonError

__all__ = ["TritonError"]
