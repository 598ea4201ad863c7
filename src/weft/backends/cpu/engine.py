"""How a grid is run: by its caller alone, or with so many workers, taken in so large pieces; native code and its words.

    record = Record(address of the kernel, bytes of scratch memory)     # what is known of a kernel: a program's cost
    weft_wanted(record, programs)        -> workers that pay, 0 where the caller alone is done as soon
    weft_ready(bytes of scratch memory)  -> 1: there are workers, with room, on cores that they may use (`Pool.prepare`)
    weft_grid(record, args, state, scratch, wanted)                     -> 1: a program's cost is known now, ask again

A worker that sleeps costs its caller a system call, and begins tens of microseconds later; one that has just ended
something looks for more for a while (`limits.SPIN_NS`), and begins within one. So it depends on the workers
what pays:

    asleep     work of more than WAKE ns; with w workers, half of whom the other half wakes, it takes about
               TELL * w / 2 + (work + WAKE * w) / (w + 1)
    awake      work of more than a few times HOT ns, on as many as are awake
    foreseen   the last time the next launch came within FORESIGHT_NS: workers nap until shortly before
    in a burst (the caller ended another launch less than BURST_NS ago) workers are woken for less, since they will be
               awake for the next launch: when what was lost without them comes to TELL (DEBT)

Who launches at the same time (CALLERS) has a core each: so many fewer workers are wanted.

WAKE, TELL and HOT are this machine's (`waking`), or what is usual, until they are known. A program's cost is what the
caller measures of its own part, so that waiting and waking are not in it; one measurement out of proportion (the system
had something else to do) counts little.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .limits import TURN_WAITERS
from .places import give
from .pool_layout import LINE


def _lines(count: int) -> tuple[Any, Any]:
    """Words on so many lines that nothing else is on: what keeps them alive, and they."""
    memory = (ctypes.c_int64 * (LINE // 8 * (count + 1)))()
    address = (ctypes.addressof(memory) + LINE - 1) & -LINE
    return memory, (ctypes.c_int64 * (LINE // 8 * count)).from_address(address)


class Engine:
    """Words that all launches of a process look at; those that all of them write (DEBT is a double) are on a line of
    their own.
    """

    THREADS, POOL, WAKE, TELL, HOT = range(5)
    LAST, DEBT, CALLERS = range(LINE // 8, LINE // 8 + 3)

    def __init__(self) -> None:
        self._memory, self.words = _lines(2)
        self.set_costs(wake=30_000, tell=3_000, hot=1_000)

    @property
    def threads(self) -> int:
        """Threads that a launch may use, the caller included; 0 as long as nobody has asked."""
        return int(self.words[self.THREADS])

    @threads.setter
    def threads(self, count: int) -> None:
        self.words[self.THREADS] = count

    def set_costs(self, *, wake: int, tell: int, hot: int) -> None:
        """What was measured, in nanoseconds."""
        self.words[self.WAKE], self.words[self.TELL], self.words[self.HOT] = wake, tell, hot


class Turns:
    """Words about who has the interpreter's lock: the thread that came back from a launch with it, until it gives it
    away in one; how often that was; on another line how much more often others waited for it in vain than not, for how
    many launches nobody does, and in which turn (HOLDER + COUNT) somebody asked for the lock; and on a line each who
    stands in the places of those that wait.
    """

    HOLDER, COUNT, MISSES, PAUSE, ASKED, PLACES = 0, 1, 16, 17, 18, 32

    def __init__(self) -> None:
        self._memory, self.words = _lines(2 + TURN_WAITERS)

    def renew(self) -> None:
        """Nobody has the lock by a launch, and nobody waits for it: as in the child of a fork."""
        self.words[self.HOLDER] = 0
        self.words[self.PLACES :] = [0] * (len(self.words) - self.PLACES)


ENGINE = Engine()
TURNS = Turns()
give("words engine", ctypes.addressof(ENGINE.words))
give("words turns", ctypes.addressof(TURNS.words))


class Record:
    """Words about one kernel in memory."""

    FN, NS, COUNT, SCRATCH, TABLE = range(5)  # NS is a double

    def __init__(self, address: int, scratch_bytes: int) -> None:
        self.words = (ctypes.c_int64 * 8)(address, 0, 0, scratch_bytes)
        self.address = ctypes.addressof(self.words)
        self._ns = ctypes.c_double.from_buffer(self.words, 8 * self.NS)

    @property
    def ns(self) -> float:
        """Nanoseconds that one thread takes for one program; 0 while nothing is known."""
        return self._ns.value

    @ns.setter
    def ns(self, value: float) -> None:
        self._ns.value = value
