"""`weft.cuda`: GPUs, and arrays on them. See `weft.runtime.gpu_arrays`."""

from .runtime.gpu_arrays import *  # noqa: F403
from .runtime.gpu_arrays import __all__ as __all__
