"""Ctrl-C while a kernel runs: native code that lets Python handle its signals, and ends the launch if a handler raises.

When a signal arrives, Python only notes it; the handler that was set with `signal.signal` runs when the main thread
comes back to the interpreter. A kernel is one call of native code, which may take long, or never end. So code that
loops asks now and then, as C extensions should:

    generated loops  count what they have done, and after some milliseconds call  weft_poll(state)
    weft_poll        on the main thread, when 100 ms have passed: takes the interpreter's lock, lets handlers run;
                     where one raises, keeps what it raised and sets the sign bit of the state's error word
    every thread     leaves its program at the next poll, and takes no other; the launch raises what was kept

A handler that returns does not disturb the launch. Nothing is installed anywhere, so that the handlers of a notebook,
of asyncio or of `signal.alarm` work as they do between two lines of Python, and a launch that is short pays nothing.
Launches on other threads are not interrupted: Python runs handlers on the main thread only.

What a kernel prints goes the same way (`weft_print`), as `sys.stdout` is Python too and may raise.

The native functions are LLVM IR (`signals.ll`).
"""

from __future__ import annotations

import ctypes
import threading

from .places import give

INTERVAL_NS = 100_000_000
"""Time between two looks at signals. Where other Python threads are busy, a look waits for the interpreter's lock, some
5 ms: a twentieth of this; and nobody notices a tenth of a second after Ctrl-C."""
LEAVE = -(1 << 63)
"""Set in the error word of a state, beside what is there: leave."""

MAIN, LAST, KIND, VALUE, TRACEBACK = range(0, 40, 8)
"""Words, by their bytes: the main thread, the time of the last look, what was raised (three pointers)."""
_ptr = ctypes.c_void_p


class Signals:
    """What the native functions work on, and the end of an interrupted launch."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * 5)()
        give("words signals", ctypes.addressof(self._words))
        self.main_thread(threading.main_thread().ident or 0)
        self.tables = ((_ptr * 3)(), (_ptr * 3)())
        """For generated code: the addresses of `weft_poll(state)`, `weft_print(state, index, program, data, size)` and
        `weft_time()`; first for kernels that wait for nobody, with `weft_look` in the place of `weft_poll`.
        """
        # A prototype that keeps the interpreter's lock, after which ctypes raises what has been restored.
        self._restore = ctypes.PYFUNCTYPE(None, _ptr, _ptr, _ptr)(("PyErr_Restore", ctypes.pythonapi))

    def main_thread(self, identifier: int) -> None:
        """Say which thread is the main one; in the child of a fork that is the one that forked."""
        self._words[MAIN] = identifier

    def raise_kept(self) -> None:
        """Raise what a handler raised, or what printing raised, in the launch that has just ended."""
        kind, value, traceback = self._words[KIND // 8 :]
        self._words[KIND // 8 :] = [0, 0, 0]
        if kind:
            self._restore(kind, value or None, traceback or None)
        raise KeyboardInterrupt("the launch was interrupted; a launch inside of a signal handler was so too")
