"""This process confined, on Linux by Landlock: what it may read and write, whom it may signal, no TCP.

What is confined can neither look into other processes nor end them, nor read files outside of the folders it was given,
nor write any but those of its own folder; what it starts is confined as it is. It is for good.

Landlock is in kernels from 5.13 on; signals are part of it from 6.12 on, TCP from 6.7. Where a part is missing the
answer says so, and the limits of time and memory hold all the same.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Sequence

__all__ = ["confine"]

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NO_NEW_PRIVILEGES = 38
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14 | 1 << 15
"""What can be allowed of a file; the rest is of folders."""
READ = EXECUTE | READ_FILE | READ_DIR
HANDLED = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""The accesses that each version of Landlock knows."""
BIND_AND_CONNECT, ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def confine(readable: Sequence[str], writable: Sequence[str]) -> dict[str, bool]:
    """Confine this thread and all that it starts; which of "files", "signals" and "network" are.

    It has to be called before there are other threads.
    """
    nothing = {"files": False, "signals": False, "network": False}
    if sys.platform != "linux":
        return nothing
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return nothing
    handled = HANDLED[min(version, max(HANDLED))]
    network, signals = version >= 4, version >= 6
    rules = _Ruleset(handled, BIND_AND_CONNECT * network, ABSTRACT_SOCKETS_AND_SIGNALS * signals)
    ruleset = system.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if ruleset < 0:
        return nothing
    try:
        for allowed, paths in ((READ, readable), (handled, writable)):
            for path in paths:
                _allow(system, ruleset, path, allowed & handled)
        system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        done = system.syscall(RESTRICT_SELF, ruleset, 0) == 0
    finally:
        os.close(ruleset)
    return {"files": done, "signals": done and signals, "network": done and network}


def _allow(system: ctypes.CDLL, ruleset: int, path: str, allowed: int) -> None:
    """Allow accesses of a folder and all in it, or of a file; one that is not there needs no rule."""
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            allowed &= OF_FILES
        system.syscall(ADD_RULE, ruleset, 1, ctypes.byref(_Beneath(allowed, folder)), 0)
    finally:
        os.close(folder)
