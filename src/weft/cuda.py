"""`weft.cuda`: GPUs, and arrays on them. See `weft.runtime.cuda`."""

from .runtime.cuda import *  # noqa: F403
from .runtime.cuda import __all__ as __all__
