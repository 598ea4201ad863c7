"""`import weft.remarks`: what the compiler decided about a kernel, as in `weft.base.remarks`, where it is written."""

from .base.remarks import *  # noqa: F403
from .base.remarks import __all__ as __all__
