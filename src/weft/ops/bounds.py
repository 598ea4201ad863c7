"""What is known of an integer while compiling: the least and the greatest that it may be, and a power of two in it.

    %r = tt.make_range {start = 0, end = 1024}      Bounds(0, 1023, 1)
    %a = arith.muli %r, 128 : i32                   Bounds(0, 130944, 128)
    %b = arith.muli %a, %a : i32                    Bounds(-2147483648, 2147483647, 16384): it may wrap

This is the one lattice for facts about integers, and a row of the table of operations has its transfer function
(`Row.bounds`): whoever walks tile IR, the program of the CPU or a lane program asks `bounds_of`. Most rows need no
formula of their own: where the result moves in one direction with each operand, its bounds are among its values at the
corners (`corners`). What is known of an i1 is read with a sign, as elsewhere: true is -1.

Not done here: how integers of a tile differ from each other (`analysis/axis.py`, `backends/cpu/questions.py`) or from
thread to thread (`analysis/global_touches.py`); those are about forms of addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MOST = 1 << 30
"""The power of two that is said to divide zero, and the greatest that is kept."""


class Bounds(NamedTuple):
    """All that an integer may be lies between `low` and `high`, both included, and is a multiple of `multiple`."""

    low: int
    high: int
    multiple: int = 1

    @classmethod
    def exact(cls, value: int) -> Bounds:
        """One known number."""
        return cls(value, value, two_part(value))

    def __or__(self, other: Bounds) -> Bounds:
        """What holds of either."""
        return Bounds(min(self.low, other.low), max(self.high, other.high), min(self.multiple, other.multiple))

    def unsigned(self, bits: int) -> Bounds:
        """The same bits read without a sign."""
        if self.low >= 0:
            return self
        if self.high < 0:
            return Bounds(self.low + (1 << bits), self.high + (1 << bits), min(self.multiple, 1 << bits))
        return Bounds(0, (1 << bits) - 1, min(self.multiple, 1 << bits))


def two_part(number: int) -> int:
    """The largest power of two that divides a number.

    >>> two_part(48), two_part(-6)
    (16, 2)
    """
    return min(MOST, number & -number) if number else MOST


def any_of(bits: int, multiple: int = 1) -> Bounds:
    """Any integer of a type, read with its sign."""
    return Bounds(-1 << bits - 1, (1 << bits - 1) - 1, multiple)


def fitted(exact: Bounds, bits: int, wrapping: bool = True) -> Bounds:
    """A result that is `exact` before it is cut to its type; if it is taken not to wrap, what the type holds of it.

    >>> fitted(Bounds(0, 300, 4), 8), fitted(Bounds.exact(300), 8), fitted(Bounds(0, 300, 4), 8, wrapping=False)
    (Bounds(low=-128, high=127, multiple=4), Bounds(low=44, high=44, multiple=4), Bounds(low=0, high=127, multiple=4))
    """
    every = any_of(bits, exact.multiple)
    if every.low <= exact.low and exact.high <= every.high:
        return exact
    if exact.low == exact.high:
        return Bounds.exact((exact.low - every.low) % (1 << bits) + every.low)
    if wrapping:
        return every
    low, high = (max(every.low, min(every.high, v)) for v in (exact.low, exact.high))
    return Bounds(low, high, exact.multiple)


# -- transfer functions -----------------------------------------------------------------------------------------------

Meaning = Callable[[Any, Any, int], Any] | None
Transfer = Callable[[Meaning, Sequence[Bounds], int], Bounds]
"""The exact result, of what a row means for two integers, its operands (read without a sign where the row reads them
so) and the bits of its type."""


def _least(a: Bounds, b: Bounds) -> int:
    return min(a.multiple, b.multiple)


def corners(multiple: Callable[[Bounds, Bounds], int] = _least) -> Transfer:
    """Of an operation whose result, for each operand alone, only rises or only falls."""

    def transfer(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
        assert meaning is not None
        a, b = x
        values = [meaning(i, j, bits) for i in (a.low, a.high) for j in (b.low, b.high)]
        return Bounds(min(values), max(values), min(MOST, multiple(a, b)))

    return transfer


def _of_quotient(a: Bounds, b: Bounds) -> int:
    """A multiple, divided by a power of two, is a smaller one."""
    exact = b.low == b.high > 0 and b.low == b.multiple and b.low <= a.multiple
    return a.multiple // b.low if exact else 1


def quotient(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """A division, however it is rounded; by zero it gives 0."""
    a, b = x
    if not b.low <= 0 <= b.high:
        return corners(_of_quotient)(meaning, x, bits)
    far = max(abs(a.low), abs(a.high))
    return Bounds(0 if a.low >= 0 and b.low >= 0 else -far, a.high if a.low >= 0 and b.low >= 0 else far)


def remainder(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """What a division leaves has the sign of the dividend; by zero it is the dividend."""
    a, b = x
    most = max(abs(b.low), abs(b.high)) - 1 if not b.low <= 0 <= b.high else max(abs(a.low), abs(a.high))
    return Bounds(max(min(a.low, 0), -most), min(max(a.high, 0), most), _least(a, b))


def left(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """A shift by the width or more gives 0."""
    a, b = x
    if not 0 <= b.low <= b.high < bits:
        return any_of(bits, a.multiple)
    return corners(lambda a, b: a.multiple << b.low)(meaning, x, bits)


def right(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """A shift by the width or more leaves the sign."""
    a, b = x
    if 0 <= b.low <= b.high < bits:
        return corners(lambda a, b: a.multiple >> b.low or 1 if b.low == b.high else 1)(meaning, x, bits)
    return Bounds(min(a.low, 0), a.high if a.high >= 0 else -1)


def _bits_of(x: Sequence[Bounds]) -> int:
    """How many bits hold all operands, their signs apart."""
    return max(v.bit_length() if v >= 0 else (~v).bit_length() for b in x for v in b[:2])


def conjunction(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """No more than an operand that is not negative."""
    multiple = max(v.multiple for v in x)
    highs = [v.high for v in x if v.low >= 0]
    return Bounds(0, min(highs), multiple) if highs else Bounds(-1 << _bits_of(x), (1 << _bits_of(x)) - 1, multiple)


def other_bits(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """Or, exclusive or: no bit is set above those of the operands."""
    low = 0 if all(v.low >= 0 for v in x) else -1 << _bits_of(x)
    return Bounds(low, (1 << _bits_of(x)) - 1, _least(*x))


def magnitude(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """Of the least number of a type it wraps."""
    (a,) = x
    return Bounds(max(a.low, -a.high, 0), max(abs(a.low), abs(a.high)), a.multiple)


def count_of_bits(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """How many bits there are of some kind."""
    return Bounds(0, bits)


def same(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """The operand, cut to the type where that is narrower."""
    return x[0]


def either(meaning: Meaning, x: Sequence[Bounds], bits: int) -> Bounds:
    """One of the last two operands."""
    return x[1] | x[2]
