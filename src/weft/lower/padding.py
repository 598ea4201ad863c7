"""Addresses in padded shared memory: a linear map, to whose offsets padding adds.

A `PaddedSharedLayout` leaves `padding` places out after every `interval` places, so that an offset o lies at
o + o / interval * padding. That is not linear, but it is as good as linear where no bit of one part of o meets one of
another: the part that registers alone decide is a constant.

    offset 64 * lane ^ 4096 * register, gaps (64, 8)    ->    72 * lane + 4608 * register
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from weft.ir.gpu import MemDescType
from weft.ir.lane import Value
from weft.layouts import with_gaps

from .context import Context

Gaps = tuple[tuple[int, int], ...]
"""(interval, padding), both in bytes here and both powers of two."""


def gaps_of(type: MemDescType, width: int) -> Gaps:
    """The gaps of memory whose elements have `width` bytes; none for most layouts."""
    return tuple((interval * width, padding * width) for interval, padding in type.gaps)


def place(
    c: Context, registers: Sequence[int], others: Sequence[Sequence[int]], gaps: Gaps = (), more: int = 0
) -> Value:
    """i32: in bytes, where offsets that are linear lie: of each register, and what bits of `others` add.

    Those are lane, warp and block; `more` is xored to all offsets.
    """
    starts = [x ^ more for x in registers]
    if not gaps:
        return c.build.linear(starts, *others)
    moving = 0
    for x in chain.from_iterable(others):
        moving |= x
    mixed = list(dict.fromkeys(x & moving for x in starts))
    offsets = _with_gaps(c, c.build.linear(mixed, *others), moving, gaps)
    where = {x: i for i, x in enumerate(mixed)}
    offsets = c.build.rename(offsets, [where[x & moving] for x in starts])
    fixed = [with_gaps(x & ~moving, gaps) for x in starts]
    return c.plus(offsets, c.build.linear(fixed)) if any(fixed) else offsets


def place_of_buffer(c: Context, index: Value, size: int, gaps: Gaps) -> Value:
    """i32: in bytes, where one of several buffers of `size` bytes begins."""
    if all(size % interval == 0 for interval, _ in gaps):
        return c.build.op("arith.muli", [index, c.number(with_gaps(size, gaps))], "i32")
    return _with_gaps(c, c.build.op("arith.muli", [index, c.number(size)], "i32"), -1, gaps)


def place_of_offset(c: Context, offset: Value, gaps: Gaps) -> Value:
    """i32: in bytes, where any offset lies."""
    return _with_gaps(c, offset, -1, gaps)


def _with_gaps(c: Context, offset: Value, bits: int, gaps: Gaps) -> Value:
    """Where offsets lie that have no other than these bits set."""
    terms = [offset]
    for interval, padding in gaps:
        if bits // interval:
            before = c.build.op("arith.shrui", [offset, c.number(interval.bit_length() - 1)], "i32")
            terms.append(c.build.op("arith.muli", [before, c.number(padding)], "i32"))
    return c.plus(*terms)
