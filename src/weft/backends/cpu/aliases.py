"""Which accesses of a kernel may be to the same memory.

A pointer that is made of one parameter stays within that parameter's array, and two arrays are taken not to overlap:
the launcher compares their addresses before each launch, and where they do overlap it runs a variant that was compiled
without that promise. What was taken for granted is noted in `Aliases.pairs`.

Arrays may also be columns of one buffer, as those are that a concatenation writes to:

    a + i % 40 + i // 40 * 80, 4 bytes each         bytes 0 to 159 of every 320, from a on
    b + i % 40 + i // 40 * 80, b = a + 160 bytes    bytes 160 to 319 of them

Where the offsets are known so far (`Touched`), the launcher finds that these never meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Any, NamedTuple

from weft.backends.cpu.program import Value, element_bits
from weft.backends.cpu.questions import CASTS, REMAINDERS, SPREAD, constant_int


class Touched(NamedTuple):
    """Bytes from `low` to `high`, and as many at every multiple of `step` from there; a step of 0: nowhere else."""

    step: int
    low: int
    high: int

    def union(self, other: Touched) -> Touched:
        """What has both."""
        return Touched(gcd(self.step, other.step), min(self.low, other.low), max(self.high, other.high))

    @property
    def leaves_room(self) -> bool:
        """Whether there are bytes between these."""
        return self.step > self.high - self.low + 1


class Offsets(NamedTuple):
    """The numbers `low` + i * step + j * another step + ..., where i is at least 0 and less than the step's count. A
    count of 0: any i, negative ones too.
    """

    low: int
    steps: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: Offsets) -> Offsets:  # type: ignore[override]
        return Offsets(self.low + other.low, self.steps + other.steps)

    def times(self, factor: int) -> Offsets:
        """These numbers times a factor."""
        back = sum(step * (count - 1) for step, count in self.steps if count) if factor < 0 else 0
        return Offsets((self.low + back) * factor, tuple((step * abs(factor), count) for step, count in self.steps))

    def touched(self) -> Touched:
        """A run of numbers that, with its copies at multiples of one step, has all of these: if it can be, one whose
        copies leave room.
        """
        steps = sorted(self.steps)
        low = high = self.low
        for k, (step, count) in enumerate(steps):
            run = Touched(gcd(*(larger for larger, _ in steps[k:])), low, high)
            if run.leaves_room or not count:
                copies = (low + high) // 2 // run.step * run.step if run.step else 0  # the copy next to 0 says as much
                return Touched(run.step, low - copies, high - copies)
            high += step * (count - 1)
        return Touched(0, low, high)


ANYWHERE = Offsets(0, ((1, 0),))


class Pair(NamedTuple):
    """Two parameters whose arrays must not overlap: `strict`, where they must not be the same either. They may all the
    same if the distance from the first to the second is no number of `meeting`, and `meeting` leaves room.
    """

    strict: bool
    meeting: Touched


class Aliases:
    """What a kernel takes for granted about the arrays it is given."""

    def __init__(
        self, params: Sequence[Value], assume_no_alias: bool, nonnegative: Callable[[Value], bool] = lambda v: False
    ) -> None:
        self._params = list(params)
        self.assumes_apart = assume_no_alias
        """Whether arrays may be taken not to overlap."""
        self._nonnegative = nonnegative
        self._known: dict[Value, Offsets] = {}
        self.pairs: dict[tuple[int, int], Pair] = {}
        """By the numbers of two parameters, the lesser first."""

    def may_meet(self, a: Value, b: Value, same_place: bool) -> bool:
        """Whether accesses by two tiles of pointers may be to one address at different points of a nest.

        `same_place` says that both have the same offsets at every point, so that within one array they meet only at
        the same point. Different parameters are taken not to meet, if that may be assumed, and are noted in `pairs`.
        """
        x, y = root_of(a), root_of(b)
        if x is None or y is None:
            return True
        if x is y:
            return not same_place and not self._apart(a, b)
        if not self.assumes_apart:
            return True
        i, j = self._params.index(x), self._params.index(y)
        meeting = self._meeting(a, b) if i < j else self._meeting(b, a)
        key = (min(i, j), max(i, j))
        pair = self.pairs.get(key, Pair(False, meeting))
        self.pairs[key] = Pair(pair.strict or not same_place, pair.meeting.union(meeting))
        return False

    def listed(self) -> list[list[int]]:
        """The pairs for a launch: the parameters, whether they are strict, and at which distances they meet: modulo a
        step (0: at any), from a number on, as many more.
        """
        rows = []
        for (i, j), (strict, meeting) in sorted(self.pairs.items()):
            at = meeting if meeting.leaves_room else Touched(0, 0, 0)
            rows.append([i, j, int(strict), at.step, at.low, at.high - at.low])
        return rows

    def _apart(self, a: Value, b: Value) -> bool:
        """Whether accesses to one array are never to the same bytes."""
        meeting = self._meeting(a, b)
        if meeting.step == 0:
            return not meeting.low <= 0 <= meeting.high
        return meeting.leaves_room and -meeting.low % meeting.step > meeting.high - meeting.low

    def _meeting(self, a: Value, b: Value) -> Touched:
        """The distances from the array of one access to that of another at which they may meet."""
        return (self._bytes(a) + self._bytes(b).times(-1)).touched()

    def _bytes(self, pointer: Value) -> Offsets:
        touched = self._known.get(pointer)
        if touched is None:
            size = max(1, element_bits(pointer.pointee) // 8)
            self._known[pointer] = touched = self._offset(pointer, 32) + Offsets(0, ((1, size),))
        return touched

    def _offset(self, value: Value, depth: int) -> Offsets:
        """Where a pointer is, from its parameter's address on, in bytes; or what an integer is."""
        op = value.op
        if op is None or not depth:
            return Offsets(0) if value in self._params and value.elem == "ptr" else ANYWHERE
        if op.name in SPREAD or op.name in CASTS:
            return self._offset(op.args[0], depth - 1)
        number = constant_int(value) if value.elem != "ptr" else None
        if number is not None:
            return Offsets(number)
        if op.name == "tt.make_range":
            return Offsets(op.attrs["start"], ((1, op.attrs["end"] - op.attrs["start"]),))
        if op.name == "tt.addptr":
            size = max(1, element_bits(value.pointee) // 8)
            return self._offset(op.args[0], depth - 1) + self._offset(op.args[1], depth - 1).times(size)
        if op.name == "arith.addi":
            return self._offset(op.args[0], depth - 1) + self._offset(op.args[1], depth - 1)
        if op.name == "arith.muli":
            for k, other in enumerate(op.args[::-1]):
                if (factor := constant_int(other)) is not None:
                    return self._offset(op.args[k], depth - 1).times(factor)
        if op.name in REMAINDERS and (divisor := constant_int(op.args[1]) or 0) > 0:
            low = 0 if self._nonnegative(op.args[0]) else 1 - divisor
            return Offsets(low, ((1, divisor - low),))
        return ANYWHERE


def root_of(value: Value) -> Value | None:
    """The parameter a pointer is derived from, if there is exactly one."""
    seen = 0
    while seen < 1000:
        seen += 1
        op = value.op
        if op is None:
            parent = value.block.parent if value.block else None
            if parent is None:
                return value if value.block is not None and not value.block.predecessors else None
            if parent.name != "scf.for" or value.index == 0:
                return None
            value = parent.args[3 + value.index - 1]
        elif op.name in (
            "tt.addptr",
            "tt.splat",
            "tt.broadcast",
            "tt.expand_dims",
            "tt.reshape",
            "tt.trans",
            "tt.bitcast",
            "tt.split",
        ):
            value = op.args[0]
        elif op.name == "scf.for":
            value = op.args[3 + value.index]
        else:
            return None
    return None


def offset_key(value: Value) -> tuple[Any, ...]:
    """What two address tiles have in common but for the base pointer: equal keys mean equal offsets at equal places."""
    key: list[Any] = []
    for _ in range(1000):
        op = value.op
        if op is None:
            parent = value.block.parent if value.block else None
            key.append("parameter" if parent is None else value)
            return tuple(key)
        if op.name == "tt.addptr":
            key.append(("add", op.args[1], element_bits(value.pointee)))
            value = op.args[0]
        elif op.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"):
            key.append((op.name, value.shape, op.attrs.get("axis")))
            value = op.args[0]
        else:
            key.append(value)
            return tuple(key)
    return (value,)
