"""How often a loop may turn whose length depends on data that is not at hand: until it has gone through an array once.

    for start in range(tl.load(starts + row), tl.load(starts + row + 1), 256): total += tl.load(x + start + i)

One iteration of all programs reads so many bytes of `x`, which has so many times as many. A loop that reads an array
again and again takes longer; one that ends early takes less, which the interval of the time says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import cast

from weft.base import Span
from weft.ir.lane import LaneProgram

from .arrays import arrays_of
from .findings import Facts
from .processor import moved_bytes
from .record import Explanation

__all__ = ["most_turns"]

Places = Mapping[Span | None, Counter[str]]


def most_turns(program: LaneProgram, once: Places, never: Places, sizes: Mapping[str, int]) -> tuple[int, str]:
    """The iterations in which the array that is gone through first is read or written once, and its name; 1 and ""
    where no array of a known size is in the loop."""
    found: tuple[int, str] = (0, "")
    facts = Facts(cast(Explanation, None), program)  # which arrays addresses are made of follows from the program alone
    for (span, verb), names in arrays_of(facts).items():
        more = _bytes(once, span, verb) - _bytes(never, span, verb)
        for name in names if len(names) == 1 else []:
            turns = sizes[name] // more if more > 0 and name in sizes else 0
            if turns and (not found[0] or turns < found[0]):
                found = turns, name
    return found if found[0] else (1, "")


def _bytes(places: Places, span: Span | None, verb: str) -> int:
    return moved_bytes(places.get(span, Counter()), verb)
