"""More threads for launches whose programs wait for each other.

A kernel may store a flag in one program and spin on it in another (a scan that looks back, a product whose tiles are
divided among programs, a barrier of the whole grid). GPUs run as many programs at once as fit, and such kernels are
launched with no more. Here a program runs on one thread from its beginning to its end, so one that waits for a
program that nobody has begun would wait for ever.

So a launch of a kernel with a loop that may wait (see `waiting`) is watched: where for a while no program has been
begun although some are left, all threads seem to wait, and more are started, twice as many each time, each of which
begins one of the programs that are left. When all programs have begun, whoever is waited for runs.

One thread watches all launches of a process: starting one takes longer than most launches.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

from .pool_layout import MOST

PAUSE_S = 0.02
"""Time between two looks at a launch: longer than most programs take, so that threads are seldom added in vain."""
PATIENCE = 50
"""Looks at nothing before the watcher goes to sleep until it is woken."""
FIRST = 4
"""Threads added at first; at most `MOST` in all: programs beyond are begun when others end."""


class Watch:
    """One launch that is looked after until `end`: `begun()` tells how many of its `total` programs have begun,
    `running()` whether anything runs, and `join` starts a thread that takes part.

    It ends by itself when nothing runs: an exception may keep the launch from saying that it is over.
    """

    def __init__(
        self, total: int, begun: Callable[[], int], running: Callable[[], bool], join: Callable[[], None]
    ) -> None:
        self._total, self._begun, self._running, self._join = total, begun, running, join
        self._added = self._idle = 0
        self._before = -1
        _watcher.add(self)

    def end(self) -> None:
        """The launch is over."""
        _watcher.launches.discard(self)

    def look(self) -> None:
        """Add threads if no program has begun since the last look."""
        begun = self._begun()
        self._idle = 0 if self._running() else self._idle + 1  # it may not have begun yet
        if begun >= self._total or self._idle > 1:
            self.end()
        elif begun == self._before and not self._idle:
            self._add(self._total - begun)
        self._before = begun

    def _add(self, left: int) -> None:
        for _ in range(min(left, max(FIRST, self._added), MOST - self._added)):
            try:
                self._join()
            except RuntimeError:  # the system gives no more
                return
            self._added += 1


class _Watcher:
    """The thread that looks at launches; started with the first one."""

    def __init__(self) -> None:
        self.launches: set[Watch] = set()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._wake = threading.Event()
        self._awake = False

    def add(self, launch: Watch) -> None:
        """Look after a launch."""
        self.launches.add(launch)
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    thread = threading.Thread(target=self._look, name="weft-watch", daemon=True)
                    thread.start()
                    self._thread = thread
        if not self._awake:
            self._wake.set()

    def _look(self) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are for the main thread; those that are added inherit this
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            self._wake.wait()
            self._wake.clear()
            self._awake, idle = True, 0
            while idle < PATIENCE:
                time.sleep(PAUSE_S)
                idle = 0 if self.launches else idle + 1
                for launch in list(self.launches):
                    launch.look()
            self._awake = False
            if self.launches:  # of one that came just now, and saw this awake
                self._wake.set()


def _begin() -> None:
    """In a process that was forked nobody watches yet."""
    global _watcher
    _watcher = _Watcher()


_watcher: _Watcher
_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin)
