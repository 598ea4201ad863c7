"""The checks of a plan (`prepared`): rows of words that say what an argument has to be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from weft.backends.cpu.calls import MOST_SLOTS, Check, Kind


def check_row(
    kind: int, slot: int, *, want: int = 0, remainders: int = Check.ANY, element: int = 0, low: int = 0, high: int = 0,
    written: int = 0,
) -> list[int]:  # fmt: skip
    """The words of a check, but for its place; a negative slot is none."""
    row = [0] * Check.SIZE
    row[Check.KIND], row[Check.WANT], row[Check.REMAINDERS] = kind, want, remainders
    row[Check.SLOT] = MOST_SLOTS if slot < 0 else slot
    row[Check.ELEMENT], row[Check.LOW], row[Check.HIGH], row[Check.WRITTEN] = element, low, high, written
    return row


def alike(number: int, divisors: Sequence[int]) -> int:
    """The remainders by 16 of numbers that keys do not tell from this one, one bit each.

    >>> from weft.runtime.specialize import COARSE
    >>> bin(alike(32, COARSE)), bin(alike(33, COARSE))
    ('0b1', '0b1111111111111110')
    """
    return sum(1 << rest for rest, divisor in enumerate(divisors) if divisor == divisors[number & 15])


def cheap_first(checks: list[int]) -> list[int]:
    """The same checks, those of constants and numbers first: they mostly tell kinds of launches apart, and arrays take
    longer. Parts of tuples stay behind the tuple that they are of.
    """

    def cost(row: list[int]) -> int:
        is_part = row[Check.PLACE] < -1
        return Kind.ARRAY if is_part else min(row[Check.KIND], Kind.ARRAY)

    rows = [checks[at : at + Check.SIZE] for at in range(0, len(checks), Check.SIZE)]
    rows.sort(key=cost)
    return list(chain.from_iterable(rows))


def is_integer(value: Any) -> bool:
    """Whether a value is handed on as the integer that it says it is: one of Python's or NumPy's, or an IntEnum's."""
    cls = type(value)
    if issubclass(cls, np.integer):
        return cls.__module__ == "numpy"
    return issubclass(cls, int) and cls is not bool and cls.__int__ is int.__int__


def is_tuple(value: Any) -> bool:
    """Whether a value is a tuple, or a named one, that has no ways of its own."""
    cls = type(value)
    return issubclass(cls, tuple) and (cls is tuple or (hasattr(cls, "_fields") and cls.__iter__ is tuple.__iter__))
