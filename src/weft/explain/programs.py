"""What all programs of a grid do, from a few of them: one of each kind is followed, the others are taken to be like it.

Programs differ at the edges of a grid, where masks cut tiles off: in a grid of 64 by 64 there are 63 * 63 programs
inside, two edges of 63 and a corner, four kinds. One of each is followed, and a few more of those inside; if all count
the same, so does the whole grid. If not, a sample of each kind is followed, spread over all that are of it, and where
those differ too, as where a triangle is cut off, what is said is the mean of the sample times the number of programs,
and is not exact. A small grid is followed as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from typing import Any

from weft.base import Span, WeftError
from weft.ir.lane import LaneProgram
from weft.sim import Report, SimulationError, Uncountable, count

__all__ = ["PlacedReport", "counted"]

SMALL = 8
"""Programs of a grid that are all followed."""
SAMPLE = 6
"""Programs of a kind that are followed where there are more."""

Grid = tuple[int, int, int]


class PlacedReport(Report):
    """A report that counts by the whole place in the source as well, not by its line alone."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[Span | None, Counter[str]] = {}

    def add(self, span: Span | None, **counts: int) -> None:
        super().add(span, **counts)
        place = self.places.setdefault(span, Counter())
        for name, number in counts.items():
            place[name] += number

    def tables(self) -> list[dict[Any, Counter[str]]]:
        return [*super().tables(), self.places]

    def add_share(self, part: Report, numerator: int, denominator: int) -> None:
        """Add what another one counted, scaled."""
        for table, other in zip(self.tables(), part.tables(), strict=True):
            for key, line in other.items():
                total = table.setdefault(key, Counter())
                for name, number in line.items():
                    total[name] += round(number * numerator / denominator)
        self.exact = self.exact and part.exact


def kinds_of(grid: Grid) -> list[list[int]]:
    """The programs of each kind, by number: those inside, and those that are the last along some axes.

    >>> kinds_of((3, 2, 1))
    [[0, 1], [3, 4], [2], [5]]
    """
    axes = [((range(size - 1),) if size > 1 else ()) + (range(size - 1, size),) for size in grid]
    x, y, _ = grid
    return [[i + x * (j + y * k) for k in ks for j in js for i in is_] for is_, js, ks in product(*axes)]


def _sample(programs: Sequence[int]) -> list[int]:
    """Some of them, spread evenly but for a step that is no multiple of anything."""
    if len(programs) <= SAMPLE:
        return list(programs)
    return sorted({programs[round(i * (len(programs) - 1) / (SAMPLE - 1))] for i in range(SAMPLE)})


def counted(program: LaneProgram, grid: Grid, scalars: Mapping[str, int | float]) -> tuple[PlacedReport, int, str]:
    """The report of a whole launch, how many programs were followed, and why it is not exact, if it is not.

    Nothing was followed where what a program does depends on data.
    """
    total = prod(grid)
    if not total:
        return PlacedReport(), 0, "the grid has no programs"
    follow = partial(_followed, program, grid, scalars)
    try:
        if total <= SMALL:
            report, followed, note = follow(range(total)), total, ""
        else:
            report, followed, note = _of_kinds(kinds_of(grid), total, follow)
    except Uncountable as error:
        return PlacedReport(), 0, str(getattr(error, "message", error))
    if not report.exact and not note:
        note = "some accesses depend on data: their bytes, sectors and wavefronts are not counted"
    return report, followed, note


def _of_kinds(
    kinds: Sequence[Sequence[int]], total: int, follow: Callable[[Sequence[int]], PlacedReport]
) -> tuple[PlacedReport, int, str]:
    """The whole from one program of each kind and a few more, if all are alike; else kind by kind."""
    report = PlacedReport()
    first = follow([0])
    others = [kind[-1] for kind in kinds if kind[-1] != 0] + _sample(kinds[0])[1:-1]
    rest = follow(others)
    if _are_alike(first, rest, len(others)):
        report.add_share(first, total, 1)
        return report, 1 + len(others), ""
    followed, note = 0, ""
    for kind in kinds:
        sample = _sample(kind)
        part = follow(sample)
        if len(kind) > len(sample) and not _are_alike(follow(sample[:1]), part, len(sample)):
            note = f"programs differ, of which {len(sample)} stand for {len(kind)}"
            part.exact = False
        report.add_share(part, len(kind), len(sample))
        followed += len(sample)
    return report, followed, note


def _are_alike(one: Report, several: Report, number: int) -> bool:
    """Whether so many programs count as often what one counts."""
    return dict(several.total) == {name: count * number for name, count in one.total.items()}


def _followed(
    program: LaneProgram, grid: Grid, scalars: Mapping[str, int | float], programs: Sequence[int]
) -> PlacedReport:
    try:
        report = PlacedReport()
        count(program, grid, scalars, programs=programs, steady=True, report=report)
        return report
    except Uncountable:
        raise
    except (SimulationError, WeftError):  # of iterations that were left out: follow all of them
        report = PlacedReport()
        count(program, grid, scalars, programs=programs, report=report)
        return report
