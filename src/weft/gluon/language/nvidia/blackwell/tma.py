"""`blackwell.tma`: bulk copies as on Hopper; gathers and scatters of rows are for Blackwell alone."""

from ....elsewhere import unsupported as _unsupported
from ..hopper.tma import *

__getattr__ = _unsupported(globals(), "blackwell.tma", "cuda:100", "async_gather async_scatter")
