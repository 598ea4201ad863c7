"""triton.backends.nvidia."""

from . import compiler

__all__ = ["compiler"]
