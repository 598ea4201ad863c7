"""Locks that are free in the child of a fork.

A child has only the thread that forked. What another thread was about to release then is held in the child for ever,
by nobody: a launch that waits for it hangs.

    self._lock = renewed(threading.RLock())
"""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar
from weakref import WeakSet

L = TypeVar("L", bound="threading.Lock | threading.RLock")

_locks: WeakSet[Any] = WeakSet()


def renewed(lock: L) -> L:
    """The same lock; the child of a fork finds it free, but for one that the forking thread itself has.

    >>> lock = renewed(threading.Lock())
    >>> lock.acquire(), _in_child(), lock.acquire(blocking=False)
    (True, None, True)
    """
    _locks.add(lock)
    return lock


def _in_child() -> None:
    for lock in list(_locks):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
