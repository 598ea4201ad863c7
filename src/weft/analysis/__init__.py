"""Questions about IR; no answer changes it.

What is asked of lane programs is loaded when it is first used: it brings the layouts and the instructions of GPUs with
it, which a compilation for the CPU needs nothing of.
"""

from typing import TYPE_CHECKING

from weft.base import lazy_face

from .axis import *
from .bounds import *
from .combining import *
from .consecutive import *
from .operands import *
from .wrapping import *

if TYPE_CHECKING:
    from .ends import *
    from .global_touches import *
    from .hazards import *
    from .lane_numbers import origins as origins
    from .limits import *
    from .liveness import *
    from .touches import (
        is_block_barrier as is_block_barrier,
        is_cluster_barrier as is_cluster_barrier,
        touches_of as touches_of,
    )

__getattr__ = lazy_face(
    __name__,
    {
        "ends": "conjuncts ends_in_runs",
        "global_touches": "GlobalTouch GlobalTouches of_one_row of_one_store",
        "hazards": "ORDERING Hazards Pending",
        "lane_numbers": "origins",
        "limits": "Limit PASSING arguments_that_spoil axis_before limit_of_run",
        "liveness": "Lifetime Numbered lifetimes lines_of_buffers touched_buffers",
        "touches": "is_block_barrier is_cluster_barrier touches_of",
    },
)
