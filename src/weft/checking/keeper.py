"""A process that runs another within limits, and ends it with all that it started. A script of its own: imports little.

    python -I -S keeper.py '{"argv": [...], "seconds": 60, "memory": 4294967296, "processes": 64, "status": 5}'

What is run has the standard files of this process, and those that it inherits. How it ended is written as JSON to the
file `status`, which it does not have: {"end": "exit", "code": 0, "seconds": 1.5, "peak": 123456}. `end` is "exit",
"signal", "time", "memory" or "processes".

On Linux what it starts is found wherever it hides, as orphans come to this process (PR_SET_CHILD_SUBREAPER), and memory
is that of all together. Elsewhere it is ended by its process group, and memory is limited for each process alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
from typing import Any

PDEATHSIG, DUMPABLE, SUBREAPER = 1, 4, 36
LINUX = sys.platform == "linux"
FIRST_POLL, LAST_POLL = 0.005, 0.05


def prctl(option: int, value: int) -> None:
    """Linux's; nothing elsewhere."""
    if LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def limit(what: int, value: int) -> None:
    """Lower a limit of this process, for good."""
    _, hard = resource.getrlimit(what)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses some
        resource.setrlimit(what, (value, value))


def begin(settings: dict[str, Any]) -> int:
    """Start what is to be run."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        prctl(PDEATHSIG, signal.SIGKILL)
        # what is reserved and never touched is no memory: RLIMIT_AS would count it
        limit(resource.RLIMIT_DATA if LINUX else resource.RLIMIT_AS, settings["memory"])
        limit(resource.RLIMIT_CORE, 0)
        limit(resource.RLIMIT_FSIZE, settings["memory"])
        limit(resource.RLIMIT_CPU, int(settings["seconds"] * (os.cpu_count() or 1)) + 5)
        os.execv(settings["argv"][0], settings["argv"])
    finally:
        os._exit(127)


def descendants() -> dict[int, int]:
    """All that came of this process, with the bytes of memory that each has."""
    parents: dict[int, tuple[int, int]] = {}
    page = resource.getpagesize()
    for name in os.listdir("/proc") if LINUX else ():
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            parents[int(name)] = int(fields[1]), int(fields[21]) * page
    found: dict[int, int] = {}
    new = {os.getpid()}
    while new:
        new = {pid for pid, (parent, _) in parents.items() if parent in new}
        found |= {pid: parents[pid][1] for pid in new}
    return found


def kill_all(group: int) -> None:
    """End the process, its group, and what has left it."""
    while True:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        left = descendants()
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, 0 if not left else os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # there is nobody left
            return
        time.sleep(0.001)


def keep(settings: dict[str, Any]) -> dict[str, Any]:
    """Run it to its end, or to a limit."""
    prctl(DUMPABLE, 0)  # nobody looks into this process
    prctl(SUBREAPER, 1)
    prctl(PDEATHSIG, signal.SIGTERM)
    start = time.monotonic()
    pid = begin(settings)

    def interrupted(*_: Any) -> None:
        kill_all(pid)
        os._exit(1)

    signal.signal(signal.SIGTERM, interrupted)
    end: dict[str, Any] = {}
    peak, poll = 0, FIRST_POLL
    while not end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            end = {"end": "exit" if code >= 0 else "signal", "code": abs(code)}
            break
        memory = descendants()
        peak = max(peak, sum(memory.values()))
        if time.monotonic() - start > settings["seconds"]:
            end = {"end": "time"}
        elif len(memory) > settings["processes"]:
            end = {"end": "processes"}
        elif peak > settings["memory"]:
            end = {"end": "memory"}
        else:
            time.sleep(poll)
            poll = min(poll * 1.3, LAST_POLL)
    kill_all(pid)
    return {**end, "seconds": time.monotonic() - start, "peak": peak}


def main() -> None:
    """See the top."""
    settings = json.loads(sys.argv[1])
    os.set_inheritable(settings["status"], False)
    text = json.dumps(keep(settings)).encode()
    os.write(settings["status"], text)


if __name__ == "__main__":
    main()
