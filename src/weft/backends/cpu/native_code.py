"""The native code that serves every kernel: workers, their jobs, how a grid is run, signals.

The code is LLVM IR, so that it exists wherever LLVM does; locks and condition variables are the system's.
"""

from __future__ import annotations

import platform
import sys

from .engine_code import engine_ir
from .job_code import jobs_ir
from .places import place, system_function
from .pool_text import Text
from .signals import Signals
from .worker_code import workers_ir


def text(signals: Signals, machine: str = "") -> str:
    """The module, for a processor; for this one's if none is said."""
    windows = sys.platform == "win32"
    t = Text(machine or platform.machine().lower(), windows)
    return "\n".join((signals.ir(), workers_ir(t), jobs_ir(t, windows), engine_ir(_core_function())))


def _core_function() -> str:
    """The system's function that tells the core on which its caller runs, as LLVM IR; nothing where there is none."""
    name = "sched_getcpu"
    return place(f"system {name}") if sys.platform == "linux" and system_function(name) else ""
