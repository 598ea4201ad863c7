"""Periods of a loop that are known to count like one that was followed, so that they are left out.

    for k in range(0, 4096, 64):    64 iterations, loads by way of a ring of three buffers
        iterations 0, 1, 2          followed: the ring's place is again what it was, so that three are a period
        iterations 3, 4, 5          followed with slopes (slopes.py): what is carried moves as before, all is the same
                                    until loads for the iterations after the last one are masked off, in iteration 62
        18 periods                  left out
        iterations 60 to 63         followed

Slopes are supposed, and proven where the period ends by what they were supposed to be. So it does no harm to suppose
those that the loop had when it was entered before: then the first period is followed with slopes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np

from weft.ir.lane import LaneOp

from .machine import Context
from .slopes import Slopes, compact
from .tables import Counts, add, less, tables_of
from .values import DTYPES, Array, Fragment

__all__ = ["Proof"]

ATTEMPTS = 6
"""Periods of one run of a loop that are followed with slopes to no end, before that is given up."""
LONGEST, LARGEST = 8, 32
"""Iterations of a period: of one that what is carried shows, and of one after which addresses begin a sector again."""

Supposed: TypeAlias = tuple[int, list[Array | None]]
"""A period, in iterations, and by how much each value that is carried moves in it."""


class Proof:
    """One run of a loop: `before` is told of each iteration, `after` says where to go on."""

    def __init__(self, context: Context, loop: LaneOp, upper: int, step: int) -> None:
        self._context, self._body, self._upper, self._step = context, loop.regions[0], upper, step
        self._loop = loop
        sliced = context.batch.launch.sliced
        self._proofs: dict[LaneOp, Supposed | None] = sliced.proofs
        self._matters = [i for i, value in enumerate(self._body.arguments[1:]) if value in sliced.needed]
        """Which of what is carried decides about anything."""
        self._outer: tuple[Slopes, ...] = context.batch.slopes
        """Of loops around it."""
        if loop not in self._proofs and any(op.name == "while" for op in self._body.walk()):
            self._proofs[loop] = None
        self._supposed: Supposed | None = self._proofs.get(loop)
        self._attempts = ATTEMPTS if loop not in self._proofs or self._supposed is not None else 0
        self._wrong: set[int] = set()
        """Periods that are none."""
        self._carried: list[list[Fragment]] = []
        """Before each iteration since iterations were left out."""
        self._slopes: Slopes | None = None
        self._under_way: Supposed = (1, [])
        self._moved: list[Array | None] = []
        """By how much what is carried moves, at the iteration of the period that is under way."""
        self._start: tuple[int, list[Fragment], Counts] = (0, [], [])

    @property
    def is_hopeful(self) -> bool:
        """Whether something may still come of it."""
        return self._attempts > 0

    def before(self, index: int, carried: list[Fragment]) -> None:
        """An iteration begins: with slopes, if there is something to suppose."""
        batch = self._context.batch
        if not self._attempts or len(batch.contexts) > 1 or batch.barriers:
            return
        self._carried.append(carried)
        if self._slopes is None:
            supposed = self._suppose()
            if supposed is None or self._left(index) < 2 * supposed[0]:
                return
            self._under_way, self._moved = supposed, supposed[1]
            self._slopes, self._start = Slopes(self._context), (index, carried, tables_of(batch.report))
        batch.slopes = (*self._outer, self._slopes)
        counter = np.full((1, 1, 1), self._under_way[0] * self._step, DTYPES[self._body.arguments[0].elem])
        self._slopes.begin(self._body, [counter, *self._moved])

    def after(self, index: int, carried: list[Fragment]) -> tuple[int, list[Fragment]]:
        """Where to go on, and with what, after an iteration that led to these."""
        batch, slopes = self._context.batch, self._slopes
        batch.slopes = self._outer
        if slopes is None:
            return index, carried
        moved = slopes.end(self._body, self._matters)
        period, supposed = self._under_way
        start, before, counts = self._start
        if moved is not None and (index - start) // self._step < period:
            self._moved = moved
            return index, carried
        self._slopes = None
        if not slopes.reason and slopes.horizon <= 0:  # it is a period, and the next one is another
            self._fail()
            return index, carried
        if moved is None or not all(_moves_by(before[i], carried[i], supposed[i], moved[i]) for i in self._matters):
            self._wrong.add(period)
            self._supposed = None
            self._fail()
            return index, carried
        if slopes.times > 1:
            longer = period * slopes.times
            if longer > LARGEST:
                self._attempts = 0
            self._supposed = longer, [None if x is None else x * slopes.times for x in supposed]
            return index, carried
        self._proofs[self._loop] = self._supposed = self._under_way
        times = min(slopes.horizon, self._left(index) // period)
        outer = [each for each in self._outer if each.is_open]
        if outer:  # the last period that is like this one is followed, for what is said of the loops around it
            times -= 1
            if times <= 0 or not all(each.as_at_first(self._body, self._matters) for each in outer):
                return index, carried
        if times <= 0:
            self._fail()
            return index, carried
        self._attempts = ATTEMPTS
        add(batch.report, less(tables_of(batch.report), counts), times)
        self._carried.clear()
        further = [f if x is None else _further(f, x, times) for f, x in zip(carried, supposed, strict=True)]
        return index + times * period * self._step, further

    def _fail(self) -> None:
        self._attempts -= 1
        if not self._attempts:
            self._proofs.setdefault(self._loop, None)

    def _left(self, index: int) -> int:
        return max(0, -(-(self._upper - index) // self._step))

    def _suppose(self) -> Supposed | None:
        """What is known, or the shortest period for which all that is carried is the same, or moves evenly."""
        supposed = self._supposed
        if supposed is not None:
            pairs = zip(self._carried[-1], supposed[1], strict=True)
            if all(x is None or all(map(_goes_with, f.data.shape, x.shape)) for f, x in pairs):
                return supposed
            self._supposed = None
        for period in range(1, min(LONGEST, len(self._carried) - 1) + 1):
            if period not in self._wrong:
                steps = {i: _step([each[i] for each in self._carried], period) for i in self._matters}
                if all(step is not None for step in steps.values()):
                    each = map(steps.get, range(len(self._carried[-1])))
                    return period, [None if step is None else compact(step) for step in each]
        if len(self._carried) > 2 * LONGEST:
            self._attempts = 0
        return None


def _goes_with(whole: int, part: int) -> bool:
    """Whether an axis of a slope goes with one of a value."""
    return part in (1, whole)


def _is_number(fragment: Fragment) -> bool:
    return fragment.known and fragment.data.dtype.kind in "iu"


def _step(values: list[Fragment], period: int) -> Array | None:
    """By how much a value moves in a period, from what it was before each iteration; None if it does not evenly."""
    now, before = values[-1], values[-1 - period]
    if not now.known and not before.known:
        return np.zeros((1, 1, 1), np.bool_)
    if not (now.known and before.known) or now.data.shape != before.data.shape:
        return None
    if np.array_equal(now.data, before.data):
        return np.zeros((1, 1, 1), np.bool_)
    steps = [b.data - a.data for a, b in pairwise(values) if _is_number(a) and _is_number(b)]
    if len(steps) < len(values) - 1 or any(not np.array_equal(step, steps[0]) for step in steps):
        return None
    return np.asarray(now.data - before.data)


def _moves_by(before: Fragment, now: Fragment, supposed: Array | None, moved: Array | None) -> bool:
    """Whether a value has moved by what was supposed, and will again."""
    if not before.known or not now.known:
        return before.known == now.known
    if supposed is None or moved is None:
        return supposed is moved and np.array_equal(before.data, now.data)
    by = now.data - before.data
    return bool((by == supposed).all() and (moved == supposed).all())


def _further(now: Fragment, step: Array, times: int) -> Fragment:
    return Fragment(now.data + step * step.dtype.type(times), now.undefined, now.known, now.flights)
