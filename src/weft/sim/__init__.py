"""The simulator: runs lane programs on NumPy, whole blocks at a time, counts what they do and checks how they do it.

It judges what the lowering makes, and knows nothing of it.
"""

from .control import Uncountable
from .count import count
from .debugger import Stop, Stops, debug
from .errors import (
    BarrierMisuseError,
    BulkCopyError,
    BulkCopyWarning,
    DeadlockError,
    DivergenceError,
    FenceError,
    InFlightError,
    MisalignedError,
    OutOfBoundsError,
    RaceError,
    ScheduleError,
    SimulationError,
    Thread,
    TrapError,
    UninitializedError,
)
from .launch import last_run, run
from .options import Options, current_options, options
from .report import Report

__all__ = [
    # running and counting
    "Options",
    "current_options",
    "options",
    "Report",
    "count",
    "last_run",
    "run",
    "Uncountable",
    # looking at variables
    "Stop",
    "Stops",
    "debug",
    # what the checkers find
    "SimulationError",
    "BarrierMisuseError",
    "BulkCopyError",
    "BulkCopyWarning",
    "DeadlockError",
    "DivergenceError",
    "FenceError",
    "InFlightError",
    "MisalignedError",
    "OutOfBoundsError",
    "RaceError",
    "ScheduleError",
    "Thread",
    "TrapError",
    "UninitializedError",
]
