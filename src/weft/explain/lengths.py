"""How often a loop may turn whose length depends on data that is not at hand: until it has gone through an array once.

    for start in range(tl.load(starts + row), tl.load(starts + row + 1), 256): total += tl.load(x + start + i)

One iteration of all programs reads so many bytes of `x`, which has so many times as many. A loop that reads an array
again and again takes longer; one that ends early takes less, which the interval of the time says. A number that all
lanes load is one element of a program, though the counter has a sector for each of its warps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import cast

from weft.base import Span
from weft.ir.lane import ELEMENT_BITS, LaneProgram

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
    numbers = _of_numbers(facts)
    for (span, verb), names in arrays_of(facts).items():
        bytes = partial(_bytes_of_number, numbers[span]) if verb == "load" and span in numbers else _bytes
        more = bytes(once, span, verb) - bytes(never, span, verb)
        for name in names if len(names) == 1 else []:
            turns = int(sizes[name] / more) if more > 0 and name in sizes else 0
            if turns and (not found[0] or turns < found[0]):
                found = turns, name
    return found if found[0] else (1, "")


def _of_numbers(facts: Facts) -> dict[Span | None, float]:
    """The places where only numbers are loaded, and the bytes of an element for each warp of a program."""
    assert facts.program is not None
    sizes: dict[Span | None, float] = {}
    tiles: set[Span | None] = set()
    for op in facts.ops:
        if op.name == "load" and op.attrs["space"] == "global":
            made = (value.op for value in facts.made_from(op.operands[0]))
            if any(maker is not None and maker.name == "linear" for maker in made):
                tiles.add(op.span)
            sizes[op.span] = ELEMENT_BITS[op.result.elem] / 8 / facts.program.warps
    return {span: size for span, size in sizes.items() if span not in tiles}


def _bytes_of_number(size: float, places: Places, span: Span | None, verb: str) -> float:
    """What programs load at a place where they load a number."""
    counts = places.get(span, Counter())
    return size * sum(n for name, n in counts.items() if name.startswith(f"kind:{verb}.global."))


def _bytes(places: Places, span: Span | None, verb: str) -> float:
    return moved_bytes(places.get(span, Counter()), verb)
