"""Worker threads, and the memory they work in.

Workers are Python threads that spend their life in native code: they look for work for a moment, then sleep on a
condition variable, and hold no lock of the interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.base import LaunchError, OutOfResources, load
from weft.base.locks import renewed

from . import native, pool_layout as at
from .engine import ENGINE, TURNS
from .host import host_cpu, usable_cores
from .limits import LATE_NS
from .nodes import cores_of, usable_by_node
from .places import give
from .watch import Watch

_i64 = ctypes.c_int64
_ptr = ctypes.c_void_p


HUGE_PAGE = 2 << 20
"""What a large page of memory is on Linux. NumPy asks the system for such where it takes twice as much or more."""
LARGE = 256 << 10
"""From how many bytes on scratch memory lies in large pages: from then on 4 KB pages are more than a core remembers."""


def _aligned(size: int, alignment: int = 64) -> tuple[Any, int]:
    """Uninitialised memory: an object that keeps it alive, and its aligned address."""
    room = size + alignment
    if size >= LARGE:
        alignment = HUGE_PAGE
        room = max(size + alignment, 2 * HUGE_PAGE)  # what is not touched takes no memory
    try:
        memory = np.empty(room, np.uint8)
    except MemoryError:
        raise OutOfResources(size, get_scratch_limit(), "scratch memory, which the system refuses") from None
    return memory, (int(memory.ctypes.data) + alignment - 1) & -alignment


class _Scratch:
    """Scratch memory of callers; used last in, first out, so that it stays warm; never cleared.

    What is free is in words, (address, size) of each block behind their number, for native code takes and gives too;
    all do so with the interpreter's lock.
    """

    MOST = 64

    def __init__(self) -> None:
        self.words = (_i64 * (1 + 2 * self.MOST))()
        self._memory: dict[int, Any] = {}

    def take(self, size: int) -> tuple[int, int]:
        """(address, size) of at least `size` bytes."""
        words = self.words
        if words[0] and words[2 * words[0]] >= size:
            words[0] -= 1
            return words[2 * words[0] + 1], words[2 * words[0] + 2]
        if words[0]:  # too small: it is not worth keeping
            words[0] -= 1
            self._memory.pop(words[2 * words[0] + 1], None)
        rounded = max(1 << (size - 1).bit_length(), 1 << 14)
        memory, address = _aligned(rounded)
        self._memory[address] = memory
        return address, rounded

    def give(self, block: tuple[int, int]) -> None:
        """Take back a block."""
        words = self.words
        if words[0] < self.MOST:
            words[2 * words[0] + 1], words[2 * words[0] + 2] = block
            words[0] += 1
        else:
            self._memory.pop(block[0], None)

    def make(self, size: int) -> None:
        """Have a block of at least `size` bytes be the next."""
        self.give(self.take(size))


_TIMER_SLACK = 29
"""PR_SET_TIMERSLACK of Linux: how much later than asked for a thread may be woken, in nanoseconds."""
_TRIES = 6
"""How often a process tries to find out what waking costs, where others keep the cores busy: a millisecond or more."""

scratch = _Scratch()
give("words scratch", ctypes.addressof(scratch.words))


class Pool:
    """Worker threads that take part in launches; one job at a time, a second meanwhile runs on its caller alone."""

    def __init__(self, workers: int) -> None:
        self.workers = workers = min(workers, at.MOST)
        self._native = native.native()
        size = at.pool_bytes(workers)
        memory, self._address = _aligned(size, at.LINE)
        _pools.append(memory)
        ctypes.memset(self._address, 0, size)
        self._busy = _i64.from_address(self._address + at.BUSY)
        self._kept_off = _i64.from_address(self._address + at.KEPT_OFF)
        self._kept_off.value = -1
        self._looked = _i64.from_address(self._address + at.LOOKED)
        self._allowed: set[int] = set()
        self._nodes: list[set[int]] = []
        self._here = getattr(ctypes.CDLL(None), "sched_getcpu", None) if sys.platform == "linux" else None
        _i64.from_address(self._address + at.GAP).value = self._address + at.GAPS
        _i64.from_address(self._address + at.LATE).value = LATE_NS
        self._prepared = 0
        _i64.from_address(self._address + at.WORKERS).value = workers
        if sys.platform != "win32":
            library = ctypes.CDLL(None)
            for monitor in (at.MONITOR, *(at.MONITORS + at.LINE * k for k in range(workers))):
                library.pthread_mutex_init(_ptr(self._address + monitor), None)
                library.pthread_cond_init(_ptr(self._address + monitor + at.CONDITION), None)
        self._room = [_i64.from_address(self._address + word) for word in (at.ROOM, at.ROOM_STRIDE)]
        self._rooms: list[Any] = []  # all that there was: a launch of another thread may be at work in it
        self._threads = [
            threading.Thread(target=self._work, args=(i,), name=f"weft-{i}", daemon=True) for i in range(workers)
        ]
        for number, thread in enumerate(self._threads):
            try:
                thread.start()
            except RuntimeError:
                del self._threads[number:]
                self.stop()
                message = f"only {number + 1} of {workers + 1} threads could be started"
                raise LaunchError(message, hint="set WEFT_NUM_THREADS to fewer") from None

    def _work(self, index: int) -> None:
        """The life of a worker; as a method of the pool it keeps the pool's memory."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_TIMER_SLACK, 1)  # its naps are shorter than what the system adds to them
        self._native.worker(self._address, index)

    def prepare(self, scratch_bytes: int) -> None:
        """Before a launch with workers, unless `weft_ready`: room for the scratch memory of each, cores to run on."""
        if scratch_bytes > self._room[1].value:
            self._enlarge(scratch_bytes)
        self._looked.value = time.monotonic_ns()
        if hasattr(os, "sched_getaffinity"):
            with contextlib.suppress(OSError):  # then as the system has it
                self._place(os.sched_getaffinity(0))
        self._prepared += 1
        if 1 < self._prepared <= _TRIES and self.workers:  # by now they have begun to live
            know: Callable[[int], bool] = load("weft.backends.cpu.waking").know_costs
            if know(self._address):
                self._prepared = _TRIES + 1

    def run_waiting(
        self, fn: int, args: int, state: int, mine: int, total: int, size: int, begun: Callable[[], int]
    ) -> bool:
        """Run all `total` programs of a state, which may wait for each other, with as many threads as that takes.

        As with `run`, what the threads work on is theirs until the native call returns, whatever is raised meanwhile.
        """
        if self._busy.value:
            return False
        wanted = min(total - 1, at.MOST, max(self.workers, get_scratch_limit() // max(1, size)))
        stride = (size + 63) & -64
        _keep, theirs = _aligned(stride * wanted)  # only what is used takes memory
        watch = None
        if wanted > self.workers:
            watch = Watch(total, begun, lambda: bool(self._busy.value), self._guest)
        try:
            return bool(self._native.run(self._address, fn, args, state, mine, wanted, theirs, stride))
        finally:
            if watch is not None:
                watch.end()

    def _guest(self) -> None:
        """Start a thread that takes part in one job; RuntimeError where the system gives no more.

        It is none of Python's, for hundreds of those that begin at once keep signals from being seen.
        """
        _hosts.add(self)
        if sys.platform == "win32":
            threading.Thread(target=self._native.guest, args=(self._address,), name="weft-guest", daemon=True).start()
            return
        library, thread = ctypes.CDLL(None), ctypes.c_ulong()
        if library.pthread_create(ctypes.byref(thread), None, self._native.guest, _ptr(self._address)):
            raise RuntimeError("no more threads")
        library.pthread_detach(thread)

    def _enlarge(self, size: int) -> None:
        """Make room for `size` bytes of scratch memory for each worker, for the launches to come too."""
        check_scratch(size, self.workers + 1)
        rounded = max(1 << (size - 1).bit_length(), 1 << 14)
        memory, address = _aligned(rounded * self.workers)
        self._rooms.append(memory)
        self._room[0].value = address  # first: who reads the old size meanwhile is in a larger room
        self._room[1].value = rounded

    def _place(self, allowed: set[int]) -> None:
        """Let the workers run on the cores that the caller may use now, but for the one that it runs on.

        Linux wakes a thread where it slept or where its waker runs if no other core seems idle, and the halted cores
        of a virtual machine do not seem so: for milliseconds worker and caller would share one core while others have
        nothing to do. Of several nodes with memory of their own, each worker stays on one (`nodes`).
        """
        core = self._here() if self._here is not None else -1
        if core == self._kept_off.value and allowed == self._allowed:
            return
        if allowed != self._allowed:
            self._nodes = usable_by_node(allowed)
        self._kept_off.value, self._allowed = core, allowed
        places = cores_of(len(self._threads), self._nodes, core)
        for thread, cores in zip(self._threads, places, strict=True):
            os.sched_setaffinity(thread.native_id or 0, cores - {core} or allowed - {core} or allowed)
        if not _asked_for:
            ENGINE.threads = min(len(allowed), self.workers + 1)

    def stop(self) -> None:
        """End the worker threads, as soon as they have done their part of the job that is running."""
        self._native.stop(self._address)
        until = time.monotonic() + 1.0
        for thread in self._threads:
            thread.join(timeout=max(0.0, until - time.monotonic()))


_asked_for = False
"""Whether somebody has said how many threads there are to be; else as many as the process may use cores."""
_pools: list[Any] = []
"""The memory of all pools there ever were, most of it never touched: native code may have found one a moment ago."""
_hosts: set[Pool] = set()
"""Pools whose memory a guest may still look at: they stay."""
_pool: Pool | None = None
_pool_lock = renewed(threading.Lock())


def get_num_threads() -> int:
    """Threads a launch may use, the caller included: `WEFT_NUM_THREADS`; or `OMP_NUM_THREADS`, with which programs say
    what all their libraries may use, if there are as many cores; or the usable cores.
    """
    global _asked_for
    if not ENGINE.threads:
        text = os.environ.get("WEFT_NUM_THREADS", "0")
        if not text.strip().isdigit():
            raise LaunchError(f"the environment variable WEFT_NUM_THREADS is {text!r}, not a number of threads")
        _asked_for = bool(int(text))
        ENGINE.threads = int(text) or _default_threads()
    return ENGINE.threads


def _default_threads() -> int:
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # a list has a number for each nested level
    cores = usable_cores()
    return min(int(first), cores) if first.isdigit() and int(first) else cores


def set_num_threads(count: int | None) -> None:
    """Use `count` threads from the next launch on; None for as many as without WEFT_NUM_THREADS."""
    global _asked_for
    asked_for = count is not None
    if count is None:
        count = _default_threads()
    if count < 1:
        raise LaunchError(f"the number of threads must be at least 1, got {count}")
    with _pool_lock:
        old = _retire()
        ENGINE.threads, _asked_for = count, asked_for
    if old is not None:
        old.stop()


def _retire() -> Pool | None:
    """Take the pool away from the launches to come."""
    global _pool
    ENGINE.words[ENGINE.POOL] = 0
    old, _pool = _pool, None
    return old


_scratch_limit: int | None = None


def get_scratch_limit() -> int:
    """Bytes of scratch memory that a launch may take on all its threads: half of the memory, if nobody sets it."""
    return _scratch_limit or host_cpu().memory_bytes // 2 or 4 << 30


def set_scratch_limit(limit: int | None) -> None:
    """Let launches take at most `limit` bytes of scratch memory; None for half of the memory."""
    global _scratch_limit
    if limit is not None and limit < 0:
        raise LaunchError(f"the limit of scratch memory must be positive, got {limit} bytes")
    _scratch_limit = limit or None


def check_scratch(size: int, threads: int, kernel: str = "", largest: Sequence[Sequence[Any]] = ()) -> None:
    """Raise OutOfResources where `size` bytes of scratch memory for each thread are more than a launch may take.

    `largest` says what the memory is for: (name, bytes), as in the metadata of a kernel.
    """
    limit = get_scratch_limit()
    if size * threads <= limit:
        return
    lines = [f"{size} bytes for each of {threads} threads"]
    lines += [f"  {part:>14} bytes  {name}" for name, part in largest]
    hint = "use smaller blocks, so that fewer and smaller tiles are alive at once"
    if size <= limit:
        hint += f"; or run on {max(1, limit // size)} threads (WEFT_NUM_THREADS)"
    hint += "; or raise the limit (WEFT_SCRATCH_LIMIT, half of the memory if not set)"
    name = "scratch memory" + (f" of kernel {kernel}" if kernel else "")
    raise OutOfResources(size * threads, limit, name, hint, details=lines)


def get_pool(threads: int) -> Pool:
    """The pool, with workers for that many threads, started when first asked for."""
    global _pool
    pool = _pool
    if pool is None:
        with _pool_lock:
            if _pool is None:
                _pool = Pool(threads - 1)
                ENGINE.words[ENGINE.POOL] = _pool._address
            pool = _pool
    return pool


def _after_fork() -> None:
    """In the child of a fork there are no workers: begin anew."""
    _retire()
    ENGINE.words[ENGINE.CALLERS] = 0
    TURNS.renew()
    native.after_fork()


def _at_exit() -> None:
    pool = _retire()
    if pool is not None:
        pool.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
