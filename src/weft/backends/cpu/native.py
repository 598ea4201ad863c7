"""Native code that serves every kernel (`native_code`), callable; made by the first process, and kept with kernels."""

from __future__ import annotations

import ctypes
import threading

from weft.base import load
from weft.base.locks import renewed

from .places import give, kept, load_native, made
from .signals import Signals

_i64 = ctypes.c_int64
_ptr = ctypes.c_void_p


_FUNCTIONS = ("worker", "guest", "run", "stop", "call_one", "settle")
_CALLED = ("wanted", "ready", "grid", "leave", "return", "asked")
"""What other native code calls, as `code` and its name."""
_TABLES = (("look", "print", "time"), ("poll", "print", "time"))
"""What generated code finds in the state's table: see `Signals.tables`."""


class Native:
    """The functions of `native_code`, callable."""

    def __init__(self) -> None:
        self.signals = Signals()
        names = [f"weft_{name}" for name in (*_FUNCTIONS, *_CALLED, *_TABLES[0], *_TABLES[1])]
        code = kept("workers") or made("workers", load("weft.backends.cpu.native_code").text())
        self._keep, addresses = load_native(*code, names)
        worker, guest, run, stop, call_one, settle, *rest = addresses
        called, table = dict(zip(_CALLED, rest, strict=False)), rest[len(_CALLED) :]
        self.worker = ctypes.CFUNCTYPE(None, _ptr, _i64)(worker)
        self.guest = ctypes.CFUNCTYPE(None, _ptr)(guest)
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _ptr, _i64, _ptr, _i64)(run)
        self.wanted = ctypes.PYFUNCTYPE(_i64, _ptr, _i64)(called["wanted"])
        self.ready = ctypes.PYFUNCTYPE(ctypes.c_int32, _i64)(called["ready"])
        self.grid = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _i64)(called["grid"])
        self.stop = ctypes.CFUNCTYPE(None, _ptr)(stop)
        self.call_one = ctypes.PYFUNCTYPE(_i64, _ptr, _ptr, _ptr)(call_one)
        self.settle = ctypes.CFUNCTYPE(None, _ptr)(settle)
        for name, address in called.items():
            give(f"code {name}", address)
        for k, address in enumerate(table):
            self.signals.tables[k // 3][k % 3] = address


_setup_lock = renewed(threading.RLock())
_native_instance: Native | None = None


def native() -> Native:
    """The native functions, compiled when first asked for."""
    global _native_instance
    if _native_instance is None:
        with _setup_lock:
            if _native_instance is None:
                _native_instance = Native()
    return _native_instance


def after_fork() -> None:
    """The child of a fork has another main thread."""
    if _native_instance is not None:
        _native_instance.signals.main_thread(threading.get_ident())
