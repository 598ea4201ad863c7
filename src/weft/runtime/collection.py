"""No garbage collection while something compiles.

Compiling makes hundreds of thousands of objects that live until it ends. Python looks through all of them again and
again for garbage in cycles and finds next to none: a quarter of the time of a long kernel. What there is in the end is
collected when the next collection comes.

    with uncollected():
        ...
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from weft.base.locks import renewed


class _Pause:
    """How many threads want no collection at the moment, and whether there is to be one afterwards."""

    def __init__(self) -> None:
        self.lock, self.wanted, self.resume = renewed(threading.Lock()), 0, False

    def begin(self) -> None:
        with self.lock:
            if not self.wanted:
                self.resume = gc.isenabled()
                gc.disable()
            self.wanted += 1

    def end(self) -> None:
        with self.lock:
            self.wanted = max(0, self.wanted - 1)
            if not self.wanted and self.resume:
                gc.enable()

    def forked(self) -> None:
        """In a process made by another thread meanwhile nobody ends what that thread began."""
        if self.wanted:
            self.wanted = 0
            if self.resume:
                gc.enable()


_pause = _Pause()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pause.forked)


@contextmanager
def uncollected() -> Iterator[None]:
    """Collect no garbage in cycles meanwhile, in any thread."""
    _pause.begin()
    try:
        yield
    finally:
        _pause.end()
