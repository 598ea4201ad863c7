"""triton.errors."""

from weft.runtime.errors import TritonError as TritonError
