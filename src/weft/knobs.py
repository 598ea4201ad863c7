"""`import weft.knobs`: the settings, as in `weft.runtime.knobs`, where they are written."""

from .runtime.knobs import *  # noqa: F403
from .runtime.knobs import __all__ as __all__
