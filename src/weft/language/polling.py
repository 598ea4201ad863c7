"""`tl.atomic_poll`, written in the language: a loop that loads until it finds what it waits for.

    while tl.atomic_load(flag, sem="acquire") != 1:
        pass
"""

from __future__ import annotations

from typing import Any

from . import core as tl
from .callable import jit
from .extra.cuda.functions import globaltimer

__all__ = ["poll", "poll_until"]


@jit
def poll(pointer: Any, expected: Any, SEM: tl.constexpr, SCOPE: tl.constexpr) -> Any:
    """Wait as long as it takes; true."""
    while tl.atomic_load(pointer, sem=SEM, scope=SCOPE) != expected:
        pass
    return expected == expected  # true, as a value of the kernel


@jit
def poll_until(pointer: Any, expected: Any, timeout_ns: Any, SEM: tl.constexpr, SCOPE: tl.constexpr) -> Any:
    """Wait for so many nanoseconds at most; whether it was found."""
    begin = globaltimer()
    matched = expected != expected  # false
    waiting = expected == expected
    while waiting:
        matched = tl.atomic_load(pointer, sem=SEM, scope=SCOPE) == expected
        waiting = (matched == 0) & (globaltimer() - begin < timeout_ns)
    return matched
