"""Loops whose iterations count alike, for the counter: a few of them are followed, and stand for the others.

    for k in range(0, 16384, 64):    256 iterations: 18 are followed, one in each third of the others, and the last 2

An iteration is like the one `period` before it if both counted the same on every line, and if what the loop carries
changed by the same: addresses move on by a constant, places in a ring of three buffers come again after three. After
`MOST` iterations that are like those before them others are left out, a multiple of the period, and what is carried
is moved on. They are left out in several jumps, with a period followed between them that has to count the same again;
if it does not, all that is left is followed, and the report is no longer `exact`. The last iterations are always
followed, as masks may end there. A loop that is entered again with as many iterations, and begins as it did before,
has the period that it had.

A loop in which warps go different ways, or wait at mbarriers, is followed to its end.
"""

from __future__ import annotations

import numpy as np

from .machine import Context
from .tables import Counts, add, less, tables_of
from .values import Fragment

MOST = 16
"""The longest period that is looked for: rows of an odd number of halves begin at the same place in a sector, of 32
bytes, after 16 rows, and only one of the 16 begins with the sector."""
LAST = 2
"""Iterations at the end that are followed whatever came before."""
JUMPS = 3

__all__ = ["Steady"]


class Steady:
    """One run of a loop; `after` is told of each iteration, and says where to go on."""

    def __init__(self, context: Context, loop: object, lower: int, upper: int, step: int) -> None:
        batch = context.batch
        self._key = (loop, -(-(upper - lower) // step))
        self._first: list[Counts] = []
        """What each of the first iterations counted."""
        self._context, self._report = context, batch.report
        self._upper, self._step = upper, step
        self._counts: list[Counts] = [tables_of(batch.report)]
        self._each: list[Counts] = []
        """What each of the last iterations counted."""
        self._carried: list[list[Fragment]] = []
        self._period = 0
        self._expected: Counts = []
        self._jumps = JUMPS
        self._since = 0

    def after(self, index: int, carried: list[Fragment]) -> tuple[int, list[Fragment]]:
        """The next index and what is carried to it, after an iteration that led to these."""
        batch = self._context.batch
        if not self._jumps or len(batch.contexts) > 1 or batch.barriers or self._left(index) < MOST:
            return index, carried
        self._counts.append(tables_of(self._report))
        self._each.append(less(self._counts[-1], self._counts[-2]))
        self._carried.append(carried)
        del self._counts[: -2 * MOST - 1], self._each[: -2 * MOST], self._carried[: -2 * MOST - 1]
        self._since += 1
        if not self._period and len(self._first) <= 2 * MOST:
            self._first.append(self._each[-1])
            if period := self._as_before():
                self._period, self._jumps = period, 1
                self._expected = less(self._counts[-1], self._counts[-1 - period])
                return self._jump(index, carried)
        if not self._period:
            self._period = self._found()
            if self._period:
                self._before[self._key] = self._period, self._first, self._context.count
            self._expected = less(self._counts[-1], self._counts[-1 - self._period]) if self._period else []
        elif self._since < self._period:
            return index, carried
        elif less(self._counts[-1], self._counts[-1 - self._period]) != self._expected:
            self._report.exact, self._jumps = False, 0
            return index, carried
        return self._jump(index, carried) if self._period else (index, carried)

    @property
    def _before(self) -> dict[object, tuple[int, list[Counts], int]]:
        """Of each loop followed before: its period, what its first iterations counted, and of how many warps."""
        launch = self._context.batch.launch
        known: dict[object, tuple[int, list[Counts], int]] = launch.sliced.periods if launch.sliced is not None else {}
        return known

    def _as_before(self) -> int:
        """The period that the loop had when it was followed before, if it has begun as it did then; else 0."""
        period, first, warps = self._before.get(self._key, (0, [], 1))
        number = len(self._first)
        if not period or number < 2 * period + 1 or number > len(first):
            return 0
        if any(_scaled(a, self._context.count) != _scaled(b, warps) for a, b in zip(first, self._first, strict=False)):
            return 0
        now, before, earlier = (self._carried[-1 - i * period] for i in range(3))
        alike = all(_moves_alike(*three) for three in zip(earlier, before, now, strict=True))
        return period if alike else 0

    def _left(self, index: int) -> int:
        return max(0, -(-(self._upper - index) // self._step) - LAST)

    def _found(self) -> int:
        """The shortest period with which the last iterations count alike; 0 for none."""
        counted = self._each
        for period in range(1, len(counted) - MOST + 1):
            if len(self._carried) <= 2 * period:
                return 0
            if any(counted[-1 - i] != counted[-1 - i - period] for i in range(MOST)):
                continue
            now, before, first = (self._carried[-1 - i * period] for i in range(3))
            if all(_moves_alike(*three) for three in zip(first, before, now, strict=True)):
                return period
        return 0

    def _jump(self, index: int, carried: list[Fragment]) -> tuple[int, list[Fragment]]:
        """Leave out a part of the iterations that are left."""
        times = self._left(index) // self._period // self._jumps
        self._jumps -= 1
        self._since = 0
        before = self._carried[-1 - self._period]
        if times:
            add(self._report, self._expected, times)
            carried = [_moved(a, b, times) for a, b in zip(before, carried, strict=True)]
            index += times * self._period * self._step
        # What comes next is compared with what was counted up to here.
        self._counts[-1] = tables_of(self._report)
        self._carried[-1] = carried
        return index, carried


def _scaled(counts: Counts, times: int) -> Counts:
    return [{key: {name: n * times for name, n in line.items()} for key, line in table.items()} for table in counts]


def _moves_alike(first: Fragment, before: Fragment, now: Fragment) -> bool:
    """Whether a value changed by the same twice; one that is not known may be anything."""
    if not (first.known and before.known and now.known):
        return not now.known
    if now.data.dtype.kind not in "iu":
        return np.array_equal(now.data, before.data) and np.array_equal(before.data, first.data)
    return np.array_equal(now.data - before.data, before.data - first.data)


def _moved(before: Fragment, now: Fragment, times: int) -> Fragment:
    if not now.known or now.data.dtype.kind not in "iu":
        return now
    return Fragment(now.data + (now.data - before.data) * times, now.undefined, now.known, now.flights)
