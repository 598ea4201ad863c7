"""Why a kernel is as it is, and what it costs: what the compiler decided and what its program does, joined.

    e = kernel.explain(x, y, out, n, BLOCK=1024, grid=(98,), target="cuda:90")

It only reads: remarks of the compilation (`weft.remarks`), counters of the lane program (`weft.sim`), and facts of the
machine. It is loaded when something is explained, and not before.
"""

from weft.base import publish as _publish

from .gather import *
from .record import *

_publish(globals())
