"""Where the words of a pool of workers are, for native code and for Python: offsets in bytes.

Each worker has a line of the pool to itself, which its caller and it write and only who steals from it reads besides:

    line 0        the caller's part of a grid: the next program, its end; how many its owner takes at first (HEAD)
    line i + 1    that of worker i, and its POST

A POST is how a caller and a worker agree without a lock: the caller sets it to OPENED for each worker that it wants; a
worker that sees it makes it TAKEN, and CLOSED when it is done; a caller that has nothing left to do closes those that
are open still, and waits for those that are taken. Lines are two cache lines apart: processors fetch them in pairs.
"""

from __future__ import annotations

from . import state

MOST = 512
"""Threads beside the caller that take part in one launch, at most."""
LINE = 128
ALL = (1 << 63) - 1
"""More programs or chunks than there are."""

MONITOR, CONDITION = 0, 64
"""The lock and the condition that a caller sleeps on; each worker has its own (MONITORS): those of many that wake at
once would wait for one lock, one after the other."""
FN, ARGS, STATE, SCRATCH, STRIDE, BASE, PARTS, WANTED, CALLED, NAP = range(384, 464, 8)
"""The job, which workers read when they have taken it; `BASE` is where its parts are, `WANTED` how many it is for, of
whom the first `CALLED` are awake or were woken. `NAP` is how long who has done its part naps before the next launch; 0
where that is not foreseen, or too soon."""
MASK = 512
"""A bit for each part of which programs are left."""
AWAKE = 640
"""A bit for each worker that is awake: it runs a part, or looks for one."""
BUSY, JOINED, OVER, GAP = range(768, 800, 8)
"""Whether a caller has the workers; how many of them took part in the launch before, when that was over, and where the
gap after it is noted. Callers' only."""
SLEEPS, STOP, OPEN, GUESTS, WORKERS = range(896, 936, 8)
"""Whether a caller sleeps until workers are done; whether workers are to leave; how many guests may join, and how many
have; how many workers there are."""
ROOM, ROOM_STRIDE, KEPT_OFF, LOOKED = range(936, 968, 8)
"""The workers' scratch memory, and how much each has; the core that no worker may run on, and when that was decided."""
LATE = 968
"""How much later than asked for a worker's nap usually ends, in nanoseconds: as often more as less."""
GAPS, GAP_KERNELS, GAP_BYTES = 1024, 128, 40
GAP_LAST, GAP_BEFORE, GAP_PAUSE, GAP_MISSES, GAP_SEEN = range(0, GAP_BYTES, 8)
"""For kernels by their addresses: nanoseconds from a launch until the next of any kernel, the last two times that this
came soon; after how many launches workers nap again, and four times for how many they do not where they miss one more;
when the kernel was launched. Then the same, but the last, for launches that were the first for a while."""
LINES = GAPS + GAP_BYTES * GAP_KERNELS * 2
NEXT, END, HEAD, POST = state.NEXT, state.TOTAL, state.CHUNK, 24
"""In a line: so a whole state is one, too."""
POSTS = LINES + LINE + POST
"""The posts, each a line after the one before."""
MASK_FROM_LINES = MASK - LINES
MONITORS = LINES + LINE * (MOST + 1)

CLOSED, OPENED, TAKEN = range(3)
"""What a POST says."""
MOST_PARTS = 64
"""Parts of a grid: more threads than that share them."""


def pool_bytes(workers: int) -> int:
    """The memory of a pool."""
    return MONITORS + LINE * workers
