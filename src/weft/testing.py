"""`import weft.testing`: measuring and comparing, as in `weft.runtime.testing`, where it is written."""

from .runtime.testing import *  # noqa: F403
from .runtime.testing import __all__ as __all__
