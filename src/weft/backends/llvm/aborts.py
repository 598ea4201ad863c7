"""When LLVM gives up it ends the process (`abort`). That cannot be turned into an exception; but the last words of the
process can say which kernel it was and at which stage, and leave its LLVM IR behind. (In a compile worker it is an
exception: see `weft.runtime.workers`.)

    with told(text, "ptx"):
        machine.emit_assembly(module)

Memory is set aside for the last words, because that there is no more is the likeliest reason for them.

LLVM has no way back from where it stopped: its handlers must not return, and to jump over its frames leaves locks taken
and memory half written. So the handler of SIGABRT, which is installed while LLVM is at work and no longer, writes and
lets the process end, by whatever handler was there before (Python's faulthandler, say). What is known to make LLVM stop
is looked for before it is asked: the IR is verified, and inline assembly checked.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.base.locks import renewed


@dataclass(frozen=True)
class _Task:
    """What LLVM is at."""

    stage: str
    code: str | bytes
    """A module of LLVM IR, or an object file."""
    kernel: str


_tasks: list[_Task] = []
"""Those of all threads."""
_reserve: list[mmap.mmap] = []
"""Addresses that are given back before the last words."""
RESERVED_BYTES = 8 << 20
_lock = renewed(threading.Lock())
_before: Any = None
"""What was done at SIGABRT before."""


@lru_cache(maxsize=1)
def _signal() -> Any:
    """signal(number, handler) -> the handler before, of the C library; None where there is none that can be used."""
    if sys.platform == "win32":
        return None
    with suppress(OSError, AttributeError):
        function = ctypes.CDLL(None).signal
        function.restype, function.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
        return function
    return None


def _aborted(number: int) -> None:
    """Say which kernels LLVM was compiling, and let what was there before have its turn."""
    with suppress(Exception):
        while _reserve:
            _reserve.pop().close()
        for task in list(_tasks):
            os.write(2, last_words(task.code, task.stage, task.kernel).encode("utf-8", "replace"))
    _signal()(number, _before)
    signal.raise_signal(signal.SIGABRT)


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)(_aborted)
_HANDLER = ctypes.cast(_CALLBACK, ctypes.c_void_p)


def last_words(code: str | bytes, stage: str, kernel: str = "") -> str:
    """What is said of a module, or of an object file; it is written to a file, to reproduce this with."""
    text = code if isinstance(code, str) else ""
    defined = re.findall(r'^define [^@\n]*@(?:"([^"]+)"|([^"( ]+))', text, re.MULTILINE)
    name = kernel or ("".join(defined[-1]) if defined else "")
    place = re.search(r'!DIFile\(filename: "([^"]*)"', text)
    with tempfile.NamedTemporaryFile(prefix="weft-", suffix=".ll" if text else ".o", delete=False) as file:
        file.write(code.encode("utf-8", "surrogatepass") if isinstance(code, str) else code)
    module = f"`{name}`" if name else "a module"
    where = f" of {place[1]}" if place else ""
    return (
        f"weft: LLVM gave up at {module}{where} (stage {stage}) and ends this process. If a kernel wrote outside "
        "of its arrays before, it may have been in LLVM's memory: launch with debug=True (for all, WEFT_DEBUG=1), "
        "which finds such a kernel. If memory ran out, LLVM needs more. Otherwise this is a fault of Weft: please "
        f"send the kernel, what LLVM says above, and {file.name} to the issue tracker of Weft. WEFT_ISOLATE=1 compiles "
        "in a process of its own, where this is an exception.\n"
    )


@contextmanager
def told(code: str | bytes, stage: str, kernel: str = "") -> Iterator[None]:
    """While LLVM is at a module or an object file: should it end the process, that is said, with the kernel."""
    global _before
    install = _signal()
    if install is None:
        yield
        return
    task = _Task(stage, code, kernel)
    with _lock:
        if not _reserve:
            with suppress(OSError, ValueError):
                _reserve.append(mmap.mmap(-1, RESERVED_BYTES))
        if not _tasks:
            _before = install(signal.SIGABRT, _HANDLER)
        _tasks.append(task)
    try:
        yield
    finally:
        with _lock:
            _tasks.remove(task)
            if not _tasks:
                install(signal.SIGABRT, _before)
