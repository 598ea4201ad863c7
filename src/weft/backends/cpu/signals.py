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

The native functions are LLVM IR (`native`).
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time

from .places import give, place, words_at
from .state import ERROR, WHOLE

INTERVAL_NS = 100_000_000
"""Time between two looks at signals. Where other Python threads are busy, a look waits for the interpreter's lock, some
5 ms: a twentieth of this; and nobody notices a tenth of a second after Ctrl-C."""
LEAVE = -(1 << 63)
"""Set in the error word of a state, beside what is there: leave."""

_MAIN, _LAST, _KEPT = 0, 1, 2  # words: the main thread, the time of the last look, what was raised (three pointers)
_ptr = ctypes.c_void_p
MONOTONIC = 0 if sys.platform == "win32" else time.CLOCK_MONOTONIC
LONG = f"i{8 * ctypes.sizeof(ctypes.c_long)}"
"""The type of C that thread identifiers and the parts of a time have."""


class Signals:
    """What the native functions work on, and the end of an interrupted launch."""

    def __init__(self) -> None:
        self._words = (ctypes.c_int64 * 5)()
        give("words signals", ctypes.addressof(self._words))
        self.main_thread(threading.main_thread().ident or 0)
        self.table = (_ptr * 3)()
        """For generated code: the addresses of `weft_poll(state)`, `weft_print(state, index, program, data, size)` and
        `weft_time()`."""
        # A prototype that keeps the interpreter's lock, after which ctypes raises what has been restored.
        self._restore = ctypes.PYFUNCTYPE(None, _ptr, _ptr, _ptr)(("PyErr_Restore", ctypes.pythonapi))

    def main_thread(self, identifier: int) -> None:
        """Say which thread is the main one; in the child of a fork that is the one that forked."""
        self._words[_MAIN] = identifier

    def raise_kept(self) -> None:
        """Raise what a handler raised, or what printing raised, in the launch that has just ended."""
        kind, value, traceback = self._words[_KEPT:]
        self._words[_KEPT:] = [0, 0, 0]
        if kind:
            self._restore(kind, value or None, traceback or None)
        raise KeyboardInterrupt("the launch was interrupted; a launch inside of a signal handler was so too")

    def ir(self) -> str:
        """The native functions; `native` calls `weft_clock` and `weft_poll` too."""
        main, last, *kept = (words_at("words signals", k) for k in range(len(self._words)))
        forget = f"call void {_python('Py_DecRef')}"
        drop = "\n  ".join(f"%k{n} = load ptr, ptr {word}\n  {forget}(ptr %k{n})" for n, word in enumerate(kept))
        keep = ", ".join(f"ptr {word}" for word in kept)
        return "\n".join((_clock(), _time(), _keep(drop, keep), _poll(main, last), _print()))


def _python(name: str) -> str:
    """A function of Python's C interface."""
    return place(f"python {name}")


def _clock() -> str:
    """Nanoseconds of a clock of the system, by its number; on Windows of the only one that is asked for."""
    if sys.platform == "win32":
        kernel32, frequency = ctypes.WinDLL("kernel32"), ctypes.c_int64(1)
        kernel32.QueryPerformanceFrequency(ctypes.byref(frequency))
        return f"""define i64 @weft_clock(i32 %kind) {{
  %count.p = alloca i64, align 8
  call i32 {place("system QueryPerformanceCounter")}(ptr %count.p)
  %count = load i64, ptr %count.p
  %seconds = udiv i64 %count, {frequency.value}
  %part = urem i64 %count, {frequency.value}
  %whole = mul i64 %seconds, 1000000000
  %scaled = mul i64 %part, 1000000000
  %rest = udiv i64 %scaled, {frequency.value}
  %ns = add i64 %whole, %rest
  ret i64 %ns
}}
"""
    widen = "add i64 0," if LONG == "i64" else f"sext {LONG}"
    to = "" if LONG == "i64" else "to i64"
    return f"""define i64 @weft_clock(i32 %kind) {{
  %time = alloca [2 x {LONG}], align 8
  call i32 {place("system clock_gettime")}(i32 %kind, ptr %time)
  %rest.p = getelementptr {LONG}, ptr %time, i64 1
  %seconds.c = load {LONG}, ptr %time
  %rest.c = load {LONG}, ptr %rest.p
  %seconds = {widen} %seconds.c {to}
  %rest = {widen} %rest.c {to}
  %whole = mul i64 %seconds, 1000000000
  %ns = add i64 %whole, %rest
  ret i64 %ns
}}
"""


def _time() -> str:
    """Nanoseconds of the clock that never goes back: what kernels take for a GPU's timer."""
    return f"""define i64 @weft_time() {{
  %now = call i64 @weft_clock(i32 {MONOTONIC})
  ret i64 %now
}}
"""


def _yield() -> str:
    """The system's function that lets another thread have the processor: one that this one may be waiting for."""
    return place("system SwitchToThread" if sys.platform == "win32" else "system sched_yield")


def _keep(drop: str, keep: str) -> str:
    """Keep what was raised, in place of what nobody came for; and mark the state."""
    return f"""define void @weft_keep(ptr %state) {{
  {drop}
  call void {_python("PyErr_Fetch")}({keep})
  %error.p = getelementptr i8, ptr %state, i64 {ERROR}
  %before = atomicrmw or ptr %error.p, i64 {LEAVE} monotonic
  ret void
}}
"""


def _poll(main: str, last: str) -> str:
    """Whether to leave the program: 1, or 0. `weft_poll` lets another thread have the processor before it looks."""
    return f"""define i32 @weft_poll(ptr %state) {{
  call i32 {_yield()}()
  %leave = call i32 @weft_look(ptr %state)
  ret i32 %leave
}}
define i32 @weft_look(ptr %state) {{
entry:
  %error.p = getelementptr i8, ptr %state, i64 {ERROR}
  %error = load atomic i64, ptr %error.p monotonic, align 8
  %stopped = icmp slt i64 %error, 0
  br i1 %stopped, label %leave, label %around
around:
  %whole.p = getelementptr i8, ptr %state, i64 {WHOLE}
  %whole = load ptr, ptr %whole.p
  %alone = icmp eq ptr %whole, null
  br i1 %alone, label %who, label %ask
ask:
  %whole.error.p = getelementptr i8, ptr %whole, i64 {ERROR}
  %whole.error = load atomic i64, ptr %whole.error.p monotonic, align 8
  %left = icmp slt i64 %whole.error, 0
  br i1 %left, label %follow, label %who
follow:
  %before = atomicrmw or ptr %error.p, i64 {LEAVE} monotonic
  br label %leave
who:
  %thread = call {LONG} {_python("PyThread_get_thread_ident")}()
  %main = load {LONG}, ptr {main}
  %is = icmp eq {LONG} %thread, %main
  br i1 %is, label %when, label %stay
when:
  %now = call i64 @weft_clock(i32 {MONOTONIC})
  %last = load i64, ptr {last}
  %passed = sub i64 %now, %last
  %soon = icmp ult i64 %passed, {INTERVAL_NS}
  br i1 %soon, label %stay, label %look
look:
  store i64 %now, ptr {last}
  %lock = call i32 {_python("PyGILState_Ensure")}()
  %handled = call i32 {_python("PyErr_CheckSignals")}()
  %fine = icmp eq i32 %handled, 0
  br i1 %fine, label %go, label %raised
go:
  call void {_python("PyGILState_Release")}(i32 %lock)
  ret i32 0
raised:
  call void @weft_keep(ptr %state)
  call void {_python("PyGILState_Release")}(i32 %lock)
  br label %leave
leave:
  ret i32 1
stay:
  ret i32 0
}}
"""


def _print() -> str:
    """Call what the state has for printing, a Python function of four numbers, unless the launch is being left."""
    call = f"call ptr (ptr, ptr, ...) {_python('PyObject_CallFunction')}"
    arguments = "i64 %index, i64 %program, i64 %address, i64 %size"
    return f"""@weft.numbers = private constant [5 x i8] c"LLLL\\00"
define void @weft_print(ptr %state, i64 %index, i64 %program, ptr %data, i64 %size) {{
entry:
  %error.p = getelementptr i8, ptr %state, i64 {ERROR}
  %error = load atomic i64, ptr %error.p monotonic, align 8
  %stopped = icmp slt i64 %error, 0
  br i1 %stopped, label %done, label %write
write:
  %function.p = getelementptr i8, ptr %state, i64 56
  %function = load ptr, ptr %function.p
  %address = ptrtoint ptr %data to i64
  %lock = call i32 {_python("PyGILState_Ensure")}()
  %made = {call}(ptr %function, ptr @weft.numbers, {arguments})
  %fine = icmp ne ptr %made, null
  br i1 %fine, label %drop, label %raised
drop:
  call void {_python("Py_DecRef")}(ptr %made)
  br label %release
raised:
  call void @weft_keep(ptr %state)
  br label %release
release:
  call void {_python("PyGILState_Release")}(i32 %lock)
  br label %done
done:
  ret void
}}
"""
