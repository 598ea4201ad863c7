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

from .places import give


class Engine:
    """Words that all launches of a process look at."""

    THREADS, POOL, WAKE, TELL, HOT, LAST, DEBT, CALLERS = range(8)  # DEBT is a double

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * 8)()
        self.set_costs(wake=30_000, tell=3_000, hot=1_000)

    @property
    def threads(self) -> int:
        """Threads that a launch may use, the caller included; 0 as long as nobody has asked."""
        return self.words[self.THREADS]

    @threads.setter
    def threads(self, count: int) -> None:
        self.words[self.THREADS] = count

    def set_costs(self, *, wake: int, tell: int, hot: int) -> None:
        """What was measured, in nanoseconds."""
        self.words[self.WAKE], self.words[self.TELL], self.words[self.HOT] = wake, tell, hot


class Turns:
    """Words about who has the interpreter's lock: the thread that came back from a launch with it, until it gives it
    away in one; how often that was; and on another line how many wait for it, how much more often they did in vain than
    not, for how many launches nobody does, and in which turn (HOLDER + COUNT) somebody asked for the lock.
    """

    HOLDER, COUNT, WAITING, MISSES, PAUSE, ASKED = 0, 1, 16, 17, 18, 19

    def __init__(self) -> None:
        self._memory = (ctypes.c_int64 * 48)()  # on lines of their own: see `pool_layout.LINE`
        self.address = (ctypes.addressof(self._memory) + 127) & -128
        self.words = (ctypes.c_int64 * 32).from_address(self.address)


ENGINE = Engine()
TURNS = Turns()
give("words engine", ctypes.addressof(ENGINE.words))
give("words turns", TURNS.address)


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
