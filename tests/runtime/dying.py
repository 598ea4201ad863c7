"""What the tests of compile workers have them do: die, or hang, when a stage of a compilation begins."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from weft.compiler import Work, compile_work, stages_begun


def compile_and_die(work: Work, stage: str, how: str, words: str = "LLVM ERROR: out of everything") -> Any:
    """Compile, and die by a signal ("SIGSEGV"), with a status ("3") or never ("hang") when a stage begins.

    The stage "" begins before all others, and before the compiler is imported. Its last words are `words`, in which
    {now} is the time, by a clock that all processes share.
    """

    def die(begun: str) -> None:
        if begun != stage:
            return
        if how == "hang":
            time.sleep(600)
        if how.isdecimal():
            os._exit(int(how))
        os.write(2, words.format(now=time.monotonic()).encode() + b"\n")
        os.kill(os.getpid(), getattr(signal, how))

    die("")
    stages_begun.append(die)
    return compile_work(work)
