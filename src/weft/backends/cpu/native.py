"""Native code that serves every kernel: workers (`worker_code`), their jobs (`job_code`), how a
grid is run (`engine_code`), signals.

The code is LLVM IR, so that it exists wherever LLVM does; locks and condition variables are the system's.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading

from . import loader as loader_module
from .engine_code import engine_ir
from .job_code import jobs_ir
from .loader import Loader, loader
from .pool_layout import BROADCAST_FN, LOCK_FN, NAP_FN, SIGNAL_FN, UNLOCK_FN, WAIT_FN
from .pool_text import Text
from .signals import Signals
from .worker_code import workers_ir

__all__ = ["Loader", "Native", "after_fork", "loader", "native", "system_functions"]

_i64 = ctypes.c_int64
_ptr = ctypes.c_void_p


def _native_ir(machine: str, windows: bool, signals: Signals) -> str:
    """What workers do, the two ends of a job, the caller's part, and how a grid is run, as LLVM IR."""
    t = Text(machine, windows)
    return "\n".join((signals.ir(), workers_ir(t), jobs_ir(t, windows), engine_ir(core_function())))


def system_functions() -> dict[int, int]:
    """Offsets in the pool and the addresses of the functions of the system that lock, wait and wake."""
    if sys.platform == "win32":
        library = ctypes.WinDLL("kernel32")
        names = {
            LOCK_FN: "AcquireSRWLockExclusive",
            UNLOCK_FN: "ReleaseSRWLockExclusive",
            WAIT_FN: "SleepConditionVariableSRW",
            NAP_FN: "SleepConditionVariableSRW",
            SIGNAL_FN: "WakeConditionVariable",
            BROADCAST_FN: "WakeAllConditionVariable",
        }
    else:
        library = ctypes.CDLL(None)
        names = {
            LOCK_FN: "pthread_mutex_lock",
            UNLOCK_FN: "pthread_mutex_unlock",
            WAIT_FN: "pthread_cond_wait",
            NAP_FN: "pthread_cond_timedwait",
            SIGNAL_FN: "pthread_cond_signal",
            BROADCAST_FN: "pthread_cond_broadcast",
        }
    return {offset: ctypes.cast(getattr(library, name), _ptr).value or 0 for offset, name in names.items()}


def core_function() -> int:
    """The address of the system's function that tells the core on which its caller runs; 0 where there is none."""
    here = getattr(ctypes.CDLL(None), "sched_getcpu", None) if sys.platform == "linux" else None
    return 0 if here is None else ctypes.cast(here, _ptr).value or 0


_TABLE = ("poll", "print", "time")
"""What generated code finds in the state's table."""


class Native:
    """The functions of `_native_ir`, callable."""

    def __init__(self, linker: Loader) -> None:
        windows = sys.platform == "win32"
        self.signals = Signals()
        names = [f"weft_{name}" for name in ("worker", "guest", "run", "wanted", "ready", "grid", "stop", *_TABLE)]
        code = linker.compile(_native_ir(platform.machine().lower(), windows, self.signals))
        self._keep, addresses = linker.load(code, names)
        worker, guest, run, wanted, ready, grid, stop, *table = addresses
        self.worker = ctypes.CFUNCTYPE(None, _ptr, _i64)(worker)
        self.guest = ctypes.CFUNCTYPE(None, _ptr)(guest)
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _ptr, _i64, _ptr, _i64)(run)
        self.wanted = ctypes.PYFUNCTYPE(_i64, _ptr, _i64)(wanted)
        self.ready = ctypes.PYFUNCTYPE(ctypes.c_int32, _i64)(ready)
        self.grid = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _i64)(grid)
        self.stop = ctypes.CFUNCTYPE(None, _ptr)(stop)
        self.addresses = {"wanted": wanted, "ready": ready, "grid": grid}
        for place, address in enumerate(table):
            self.signals.table[place] = address


_setup_lock = threading.RLock()
_native_instance: Native | None = None


def native() -> Native:
    """The native functions, compiled when first asked for."""
    global _native_instance
    if _native_instance is None:
        with _setup_lock:
            if _native_instance is None:
                _native_instance = Native(loader())
    return _native_instance


def after_fork() -> None:
    """In the child of a fork locks may be in any state: make new ones."""
    global _setup_lock
    _setup_lock = threading.RLock()
    loader_module.after_fork()
    if _native_instance is not None:
        _native_instance.signals.main_thread(threading.get_ident())
