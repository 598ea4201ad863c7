"""`triton.experimental`: Gluon."""

from weft import gluon

__all__ = ["gluon"]
