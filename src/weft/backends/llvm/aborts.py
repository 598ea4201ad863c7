"""When LLVM gives up it ends the process (`abort`). That cannot be turned into an exception; but the last words of the
process can say which kernel it was, and leave its LLVM IR behind.

    with told(text):
        machine.emit_assembly(module)

LLVM has no way back from where it stopped: its handlers must not return, and to jump over its frames leaves locks taken
and memory half written. So the handler of SIGABRT, which is installed while LLVM is at work and no longer, writes and
lets the process end, by whatever handler was there before (Python's faulthandler, say). What is known to make LLVM stop
is looked for before it is asked: the IR is verified, and inline assembly checked.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

__all__ = ["told"]

_texts: list[str] = []
"""The modules that are being compiled, by all threads."""
_lock = threading.Lock()
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
        for text in list(_texts):
            os.write(2, last_words(text).encode("utf-8", "replace"))
    _signal()(number, _before)
    signal.raise_signal(signal.SIGABRT)


_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int)(_aborted)
_HANDLER = ctypes.cast(_CALLBACK, ctypes.c_void_p)


def last_words(text: str) -> str:
    """What is said of a module; its text is written to a file."""
    defined = re.findall(r'^define [^@\n]*@(?:"([^"]+)"|([^"( ]+))', text, re.MULTILINE)
    name = "".join(defined[-1]) if defined else "a module"
    place = re.search(r'!DIFile\(filename: "([^"]*)"', text)
    with tempfile.NamedTemporaryFile("w", prefix="weft-", suffix=".ll", delete=False, encoding="utf-8") as file:
        file.write(text)
    where = f" of {place[1]}" if place else ""
    return (
        f"weft: LLVM gave up while it compiled `{name}`{where} and ends this process. This is a fault of Weft: please "
        f"send the kernel, what LLVM says above, and {file.name} to the issue tracker of Weft.\n"
    )


@contextmanager
def told(text: str) -> Iterator[None]:
    """While LLVM compiles a module: should it end the process, that is said, with the module's kernel."""
    global _before
    install = _signal()
    if install is None:
        yield
        return
    with _lock:
        if not _texts:
            _before = install(signal.SIGABRT, _HANDLER)
        _texts.append(text)
    try:
        yield
    finally:
        with _lock:
            _texts.remove(text)
            if not _texts:
                install(signal.SIGABRT, _before)
