"""Exceptions that handlers of signals raise while something compiles: `signal.alarm` with a TimeoutError, say.

They come out of whatever is being done, and must not be taken for a fault of it, nor become another exception.
"""

from __future__ import annotations

import functools
import signal
from types import CodeType
from typing import Any


def raised_by_handler(error: BaseException) -> BaseException | None:
    """Of an exception and those that caused it, the one that a handler raised which Python calls for a signal."""
    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    cause: BaseException | None = error
    while cause is not None and codes:
        trace = cause.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in codes:
                return cause
            trace = trace.tb_next
        cause = cause.__cause__
    return None


def _code(handler: Any) -> CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not callable(handler):  # the system's own, or none
        return None
    code = getattr(handler, "__code__", None) or getattr(handler.__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None
