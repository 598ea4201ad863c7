"""Counts of programs that are followed together, as the warps of one large program, told apart afterwards.

Most of what is counted is the same for all warps that do it: it is kept once for all of their programs, and each has
its part. Warps of some programs may go another way for a while: what these count is kept for these. Only what an
access counts may differ from warp to warp, as at the edge of an array: that is kept for each program by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.base import Span
from weft.sim import Report

__all__ = ["Grouped"]

SIDE = "_taken"
"""How counters end that say how many warps take a side of an `if`: "then:12_taken"."""
Group: TypeAlias = tuple[tuple[int, int], ...]
"""Programs, by number, each with how many warps of it there are."""


class Grouped(Report):
    """A report of several programs, by the place in the source."""

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[tuple[Group, Span | None], Counter[str]] = {}
        self._groups: dict[bytes, tuple[Group, NDArray[np.int64]]] = {}
        """By the programs of warps."""
        self._group: Group = ()
        self._program_of: NDArray[np.int64] = np.zeros(0, np.int64)
        """Of each warp that is counted the index of its program in the group."""

    def of_warps(self, programs: NDArray[np.int64]) -> None:
        key = programs.tobytes()
        if key not in self._groups:
            numbers, program_of, warps = np.unique(programs, return_inverse=True, return_counts=True)
            self._groups[key] = tuple(zip(numbers.tolist(), warps.tolist(), strict=True)), program_of
        self._group, self._program_of = self._groups[key]

    def add(self, span: Span | None, **counts: int) -> None:
        self._add(self._group, span, counts)

    def _add(self, group: Group, span: Span | None, counts: Mapping[str, int]) -> None:
        key = group, span
        place = self._counters.get(key)
        if place is None:
            place = self._counters[key] = Counter()
        for name, number in counts.items():
            place[name] += number

    def add_each(self, span: Span | None, counts: Mapping[str, NDArray[np.int64]]) -> None:
        by_program = {name: np.bincount(self._program_of, each) for name, each in counts.items()}
        warps = np.array([warps for _, warps in self._group])
        if all((each * warps[0] == each[0] * warps).all() for each in by_program.values()):
            self.add(span, **{name: int(each.sum()) for name, each in counts.items()})
            return
        for at, one in enumerate(self._group):
            self._add((one,), span, {name: int(each[at]) for name, each in by_program.items()})

    def add_sides(self, span: Span | None, number: int, conditions: NDArray[np.bool_]) -> None:
        sides = {f"then:{number}{SIDE}": conditions, f"else:{number}{SIDE}": ~conditions}
        self.add_each(span, {name: side.astype(np.int64) for name, side in sides.items()})

    def tables(self) -> list[dict[Any, Counter[str]]]:
        return [self._counters]

    def places(self, programs: Sequence[int]) -> dict[Span | None, Counter[str]]:
        """What some of the programs count, those that are named twice twice."""
        times = Counter(programs)
        places: dict[Span | None, Counter[str]] = {}
        for (group, span), counts in self._counters.items():
            part = sum(times[number] * warps for number, warps in group)
            if part:
                whole = sum(warps for _, warps in group)
                place = places.setdefault(span, Counter())
                for name, number in counts.items():
                    place[name] += number * part // whole
        return places
