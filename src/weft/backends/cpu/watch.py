"""More threads for launches whose programs wait for each other.

A kernel may store a flag in one program and spin on it in another (a scan that looks back, a product whose tiles are
divided among programs, a barrier of the whole grid). GPUs run as many programs at once as fit, and such kernels are
launched with no more. Here a program runs on one thread from its beginning to its end, so one that waits for a
program that nobody has begun would wait for ever.

So a launch of a kernel with a loop that may wait (see `waiting`) is watched: where for a while no program has been
begun although some are left, all threads seem to wait, and more are started, twice as many each time, each of which
begins one of the programs that are left. When all programs have begun, whoever is waited for runs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

__all__ = ["MOST", "Watch"]

PAUSE_S = 0.02
"""Time between two looks at a launch: longer than most programs take, so that threads are seldom added in vain."""
FIRST, MOST = 4, 512
"""Threads added at first, and in all: programs beyond are begun when others end."""


class Watch:
    """Looks after one launch, on a thread of its own, until it is `over`: `begun()` tells how many of its `total`
    programs have begun, `running()` whether anything runs, and `join` starts a thread that takes part.

    It ends by itself when nothing runs: an exception may keep the launch from saying that it is over.
    """

    def __init__(
        self, total: int, begun: Callable[[], int], running: Callable[[], bool], join: Callable[[], None]
    ) -> None:
        self._total, self._begun, self._running, self._join = total, begun, running, join
        self._added = 0
        self.over = threading.Event()
        threading.Thread(target=self._look, name="weft-watch", daemon=True).start()

    def _look(self) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are for the main thread; those that are added inherit this
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        before = -1
        while not self.over.wait(PAUSE_S) and self._running():
            begun = self._begun()
            if begun >= self._total:
                return
            if begun == before:
                self._add(self._total - begun)
            before = begun

    def _add(self, left: int) -> None:
        for _ in range(min(left, max(FIRST, self._added), MOST - self._added)):
            try:
                self._join()
            except RuntimeError:  # the system gives no more
                return
            self._added += 1
