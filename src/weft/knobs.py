"""`import weft.knobs`: this is the module `weft.runtime.knobs`, where the settings are written."""

import sys

from .runtime import knobs
from .runtime.knobs import *  # noqa: F403

__doc__ = knobs.__doc__
sys.modules[__name__] = knobs
