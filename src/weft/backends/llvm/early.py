"""What LLVM does once in a process, done by another thread while the first kernel is imported for and traced.

    begin("sm_90a", lambda: emit(NOTHING))      # returns at once
    ...
    wait("sm_90a")                              # before the kernel is emitted

Registering targets and filling their tables takes 3 to 7 ms, and LLVM needs no lock of the interpreter for it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable

from weft.base import WeftError

_begun: dict[Hashable, threading.Thread] = {}


def begin(key: Hashable, work: Callable[[], object]) -> None:
    """Have `work` done in another thread, once for each `key`; an error in it is left to the kernel that comes.

    Where no thread can be started, nothing is done.
    """

    def run() -> None:
        with contextlib.suppress(WeftError, RuntimeError):
            work()

    if key not in _begun:
        thread = threading.Thread(target=run, name="weft-llvm")
        with contextlib.suppress(RuntimeError):
            thread.start()
            _begun[key] = thread


def wait(key: Hashable) -> None:
    """Wait until what was begun, if it was, is done."""
    thread = _begun.get(key)
    if thread is not None:
        thread.join()
