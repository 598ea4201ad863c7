"""How long and how much: what native code decides by, in nanoseconds where nothing else is said."""

from __future__ import annotations

SPIN_NS = 45_000
"""How long a worker that has nothing to do looks for more before it sleeps, and a caller for the end of its workers:
long enough to be awake still when the next launch follows at once, and not so long that others miss the core."""
SOON_NS, GLANCE_NS, WATCH_NS, EARLY_NS = 35_000, 5_000, 40_000, 15_000
"""Where the next launch is foreseen, but not so soon, a worker looks for a moment, naps, and looks again: no longer in
all. Its nap ends EARLY_NS before, and earlier by as much as naps end late."""
LATE_NS, MOST_LATE_NS, LATE_STEP_NS = 25_000, 100_000, 1_000
"""How late that is taken to be at first, and at most; and by how much one that ends later, or sooner, changes it."""
FORESIGHT_NS = 1_000_000
"""What comes later after a launch is not foreseen."""
PAUSE_NS = 5_000_000
"""After this without a launch of a kernel, what its caller does takes longer than the next times."""
MOST_MISSES = 127
"""Four times as many as launches of a kernel that workers do not nap after, at most, if they were not awake in time."""
SPINS = 16
"""Looks between two looks at the clock, each with a pause instruction (15 to 140 cycles)."""
UNKNOWN_NS = 50e6
"""What a program is taken to cost where nothing is known and there is a thread for each."""
CHUNK_NS = 5e6
"""The longest that a chunk should take: bounds how long the last worker is waited for, and a program without loops
keeps Ctrl-C waiting."""
LEAST_CHUNK_NS = 1e3
"""The shortest: taking one costs some 50 ns, more where many threads take theirs at once."""
CHUNKS_PER_THREAD = 16
FIRST_CHUNK = 64
"""Programs in a chunk while a single one was measured."""
HEAD_NS = 10e3
"""What a thread takes of its part at once, if nobody was there before: the whole, or half of a longer one. The rest is
taken in chunks, by whoever has nothing else to do."""
LEAST_SHARE_NS = 2e3
"""The least work that a worker which is awake is given."""
QUICK_NS = 3e3
"""Work below this is the caller's, whatever the workers do; each time that `SAMPLED` has no bit of, it is measured."""
SAMPLED = 15
SLICE_NS = 100e3
"""What a launch runs alone, beside those of other threads, before it asks again how many workers there are for it."""
BURST_NS = 50_000
LOOK_NS = 10_000_000
"""For how long workers may run where they were told to: then it is asked again which cores the process may use."""
LOOK_AGAIN_NS = 100_000_000
"""After this it is asked again which cores there are, where it was one."""
ALIKE = 0.03125
"""What is known of a program's cost is replaced by what differs by more of it."""
OUTLIER = 4.0
"""A measurement counts as no more than so many times what was known."""
TURN_WAITERS = 4
"""How many threads that are back from a launch wait for the interpreter's lock busily: as many as could have had it in
a fraction of what the shortest nap takes."""
TURN_LAST = TURN_WAITERS - 1
"""The number of the last place in their row."""
TURN_NAP_NS, TURN_NAPS = 50_000, 12
"""How long one sleeps that is one too many, or got no turn in SPIN_NS, longer by as much each time; and how often,
until it asks for the lock all the same."""
TURN_FREE_NS = 3_000
"""Who is given the lock sooner than this has found it free."""
TURN_MISS, TURN_PAUSE = 8, 64
"""For how many turns one counts that was waited for while the lock was free; and for how many launches nobody waits,
where more than that have come together."""
HOLD_NS = 5e3
"""Work up to this keeps the interpreter's lock: to give it away and get it back from another thread takes longer."""
