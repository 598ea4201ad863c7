"""What all programs of a grid do, from a few of them: one of each kind is followed, the others are taken to be like it.

Programs differ in how often they go through loops, which follows from their index (`weft.sim.trips`), as under a
causal mask: classes of those that go the same way are counted one by one, and of many classes a few, if what is
between is on the line from one to the other. Within a class they differ at the edges of a grid, where masks cut tiles
off: in a grid of 64 by 64 there are 63 * 63 programs inside, two edges of 63 and a corner, four kinds.

One of each is followed, and a few more of those inside; if all count the same, so does the whole grid. If not, a
sample of each kind is followed, spread over all that are of it, and where those differ too, as where a triangle is
cut off, what is said is the mean of the sample times the number of programs, and is not exact. A small grid is
followed as a whole. Programs that go the same way are followed together, as the warps of one large program.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.base import Span, WeftError
from weft.ir.lane import LaneProgram
from weft.sim import Report, SimulationError, Sliced, Uncountable, count, trips

from .grouped import Grouped

__all__ = ["Given", "PlacedReport", "counted"]

SMALL = 8
"""Programs of a grid that are all followed."""
SAMPLE = 6
"""Programs of a kind that are followed where there are more."""
OF_DATA = 32
"""The same where what arrays hold is known, on which each program may depend."""
LONG = 3
"""The same where programs are followed one by one, as where each takes tile after tile."""
FEW = 4
"""Classes that are all counted."""
BEGINNING = 2
"""Classes with the shortest loops, which are counted where there are many."""

Grid = tuple[int, int, int]
Key = TypeVar("Key")
Classes: TypeAlias = Sequence[tuple[tuple[int, ...], Sequence[int]]]
"""Programs that go the same way: how often they go through each loop, and their numbers."""


class PlacedReport(Report):
    """A report that counts by the whole place in the source as well, not by its line alone."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[Span | None, Counter[str]] = {}
        self.longest = 1.0
        """Instructions of the longest program by the mean, where programs go through loops more or less often."""

    def add_places(self, places: Mapping[Span | None, Counter[str]]) -> None:
        """Add what was counted by place."""
        for span, counts in places.items():
            self.places.setdefault(span, Counter()).update(counts)

    @property
    def lines(self) -> dict[tuple[str, int] | None, Counter[str]]:
        """By line: what was added for places, or shares of other reports, which are rounded for lines as for places."""
        if self._lines:
            return self._lines
        lines: dict[tuple[str, int] | None, Counter[str]] = {}
        for span, counts in self.places.items():
            lines.setdefault((span.file, span.line) if span is not None else None, Counter()).update(counts)
        return lines

    def add_share(self, part: PlacedReport, numerator: int, denominator: int) -> None:
        """Add what another one counted, scaled."""
        self.add_shares([(part, Fraction(numerator, denominator))])

    def add_shares(self, parts: Sequence[tuple[PlacedReport, Fraction]]) -> None:
        """Add the sum of what others counted, scaled, rounded once."""
        _add_shares(self._lines, [(part.lines, share) for part, share in parts])
        _add_shares(self.places, [(part.places, share) for part, share in parts])
        self.exact = self.exact and all(part.exact for part, _ in parts)

    def counts_as(self, parts: Sequence[tuple[Report, Fraction]]) -> bool:
        """Whether it counts in all what others do, scaled."""
        expected = _sum([(part.total, share) for part, share in parts])
        total = self.total
        return all(total[name] == number for name, number in expected.items())


def _add_shares(table: dict[Key, Counter[str]], parts: Sequence[tuple[Mapping[Key, Counter[str]], Fraction]]) -> None:
    for key in dict.fromkeys(key for other, _ in parts for key in other):
        total = table.setdefault(key, Counter())
        for name, number in _sum([(other.get(key, Counter()), share) for other, share in parts]).items():
            total[name] += round(number)


def _sum(parts: Sequence[tuple[Mapping[str, int], Fraction]]) -> dict[str, Fraction]:
    """By name, of what is in any of them."""
    names = dict.fromkeys(name for counts, _ in parts for name in counts)
    return {name: sum((share * counts.get(name, 0) for counts, share in parts), Fraction(0)) for name in names}


def kinds_of(grid: Grid) -> list[list[int]]:
    """The programs of each kind, by number: those inside, and those that are the last along some axes.

    >>> kinds_of((3, 2, 1))
    [[0, 1], [3, 4], [2], [5]]
    """
    axes = [((range(size - 1),) if size > 1 else ()) + (range(size - 1, size),) for size in grid]
    x, y, _ = grid
    return [[i + x * (j + y * k) for k in ks for j in js for i in is_] for is_, js, ks in product(*axes)]


def classes_of(trips: Any) -> Classes:
    """Programs that go the same way, with how often they go through each loop, the fewest times first.

    >>> import numpy as np
    >>> classes_of(np.array([[2], [4], [2]]))
    [((2,), [0, 2]), ((4,), [1])]
    """
    if not trips.shape[1]:
        return [((), range(len(trips)))]
    keys, of_program = np.unique(trips, axis=0, return_inverse=True)
    of_program = of_program.reshape(-1)
    ends = np.cumsum(np.bincount(of_program))[:-1]
    members = np.split(np.argsort(of_program, kind="stable"), ends)
    return [(tuple(key), numbers.tolist()) for key, numbers in zip(keys.tolist(), members, strict=True)]


def _sample(programs: Sequence[int], most: int = SAMPLE) -> list[int]:
    """Some of them, spread evenly but for a step that is no multiple of anything."""
    if len(programs) <= most:
        return list(programs)
    return sorted({programs[round(i * (len(programs) - 1) / (most - 1))] for i in range(most)})


@dataclass(frozen=True)
class Given:
    """What is known of a launch besides its program: the grid, and of the arguments numbers and what arrays hold."""

    grid: Grid
    scalars: Mapping[str, int | float]
    data: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)
    """Bytes of arrays that are only read."""
    suppose: bool | None = None
    """What branches do whose condition is not known all the same."""
    turns: int | None = None
    """How often loops turn whose length is not known."""


def counted(program: LaneProgram, given: Given) -> tuple[PlacedReport, int, str]:
    """The report of a whole launch, how many programs were followed, and why it is not exact, if it is not.

    Nothing was followed where a loop or a branch depends on data that are not known, and nothing is supposed of it.
    """
    grid, total = given.grid, prod(given.grid)
    if not total:
        return PlacedReport(), 0, "the grid has no programs"
    ways, apart, known = trips(program, grid, given.scalars)
    follow = _Followed(program, given, apart, ways if known else None)
    try:
        if total <= SMALL:
            report, note = follow(range(total)), ""
        else:
            classes = classes_of(ways)
            report, note = _of_classes(classes, kinds_of(grid), follow)
            report.longest = _longest(classes, report, total, follow)
    except Uncountable as error:
        return PlacedReport(), 0, str(getattr(error, "message", error))
    if not report.exact and not note:
        unknown = _unknown(program, given)
        note = f"some accesses depend on {unknown}: their bytes, sectors and wavefronts are not counted"
    return report, follow.number, note


def _unknown(program: LaneProgram, given: Given) -> str:
    """What is not known of a launch: its data, and numbers among its arguments that were not given."""
    numbers = [p.name for p in program.parameters if p.elem not in ADDRESSES]
    missing = [f"`{name}`" for name in numbers if name not in given.scalars]
    if not missing:
        return "data"
    return f"data, or on {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not given"


ADDRESSES = ("ptr", "tensormap")


def _longest(classes: Classes, report: PlacedReport, total: int, follow: _Followed) -> float:
    """Instructions of a program of the class with the longest loops, by the mean of all."""
    mean = report.total["instructions"] / total
    if len(classes) < 2 or not mean:
        return 1.0
    _, programs = max(classes, key=lambda each: sum(each[0]))
    return max(1.0, follow(programs[:1]).total["instructions"] / mean)


_EXPLAINED: deque[tuple[LaneProgram, Sliced]] = deque(maxlen=4)
"""The programs that were explained last: an explanation of other arguments goes on from what is known of them."""


def _taken_apart(program: LaneProgram) -> Sliced:
    for known, sliced in tuple(_EXPLAINED):
        if known is program:
            return sliced.again()
    sliced = Sliced(program)
    _EXPLAINED.append((program, sliced))
    return sliced.again()


class _Followed:
    """What some programs count, and how many have been followed in all."""

    def __init__(self, program: LaneProgram, given: Given, apart: bool, ways: NDArray[np.int64] | None) -> None:
        self._launch = program, given
        self._ways = ways
        self.apart = apart
        self.sample = OF_DATA if given.data else SAMPLE
        self._sliced = _taken_apart(program)
        self._reports: dict[int, Grouped] = {}
        """By program what it was counted in."""
        self._known: dict[tuple[int, ...], PlacedReport] = {}

    @property
    def number(self) -> int:
        """How many were followed."""
        return len(self._reports)

    def ahead(self, programs: Iterable[int]) -> None:
        """Follow those that were not, together: they will be asked for."""
        fresh = [number for number in dict.fromkeys(programs) if number not in self._reports]
        if fresh:
            reports = _followed(*self._launch, fresh, self._sliced, self._parts(fresh))
            self._reports.update(reports)

    def __call__(self, programs: Sequence[int]) -> PlacedReport:
        """Those with these numbers, together. The report is not to be changed: it may be asked for again."""
        key = tuple(programs)
        if key not in self._known:
            self.ahead(programs)
            report = self._known[key] = PlacedReport()
            for grouped in {id(r): r for r in (self._reports[number] for number in programs)}.values():
                report.add_places(grouped.places(programs))
                report.exact = report.exact and grouped.exact
        return self._known[key]

    def _parts(self, programs: Sequence[int]) -> list[list[int]]:
        """Those that can be followed together: where bounds of loops differ, those that go the same way."""
        if not self.apart:
            return [list(programs)]
        if self._ways is None:
            return [[number] for number in programs]
        parts: dict[bytes, list[int]] = {}
        for number in programs:
            parts.setdefault(self._ways[number].tobytes(), []).append(number)
        return list(parts.values())


def _of_classes(classes: Classes, kinds: Sequence[Sequence[int]], follow: _Followed) -> tuple[PlacedReport, str]:
    """The whole, class by class, or, where there are many, from a few of them."""
    if len(classes) == 1:
        return _of_kinds(kinds, follow)
    followed = classes if len(classes) <= FEW else classes[:BEGINNING]
    sets = [set(kind) for kind in kinds]
    inside = [[part for kind in sets if (part := sorted(kind.intersection(of)))] for _, of in followed]
    if len(classes) > FEW:
        whole = _in_a_line(classes, inside, follow)
        return whole if whole is not None else _of_samples(kinds, follow)
    return _summed([_of_kinds(each, follow) for each in inside])


def _summed(parts: Sequence[tuple[PlacedReport, str]]) -> tuple[PlacedReport, str]:
    report = PlacedReport()
    for part, _ in parts:
        report.add_share(part, 1, 1)
    return report, next((note for _, note in parts if note), "")


def _in_a_line(
    classes: Classes, inside: Sequence[Sequence[Sequence[int]]], follow: _Followed
) -> tuple[PlacedReport, str] | None:
    """The whole, if what a program does grows evenly with how often it goes through its loops.

    The first classes are counted as they are: loops of a few iterations are all beginning and end. Of the others the
    outermost and one between are followed, two programs of each. None if what is between is not on the line.
    """
    rest = classes[BEGINNING:]
    low, middle, high = (rest[at] for at in (0, len(rest) // 2, -1))
    places = [_between(low[0], high[0], key) for key, _ in rest]
    if any(place is None for place in places):
        return None
    pairs = [follow([of[0], of[-1]]) for _, of in (low, middle, high)]
    alone = follow([high[1][0]])
    at = _between(low[0], high[0], middle[0]) or Fraction(0)
    if not (_are_alike(alone, pairs[2], 2) and pairs[1].counts_as([(pairs[0], 1 - at), (pairs[2], at)])):
        return None
    number = sum(len(of) for _, of in rest)
    share = sum(
        (place * len(of) for place, (_, of) in zip(places, rest, strict=True) if place is not None), Fraction(0)
    )
    line = PlacedReport()
    line.add_shares([(pairs[0], (number - share) / 2), (pairs[2], share / 2)])
    return _summed([*(_of_kinds(each, follow) for each in inside), (line, "")])


def _between(low: tuple[int, ...], high: tuple[int, ...], key: tuple[int, ...]) -> Fraction | None:
    """Where it is from one to the other, if it is on their line.

    >>> _between((2, 0), (6, 8), (3, 2)), _between((2, 0), (6, 8), (3, 3))
    (Fraction(1, 4), None)
    """
    if any(a == b != k for a, b, k in zip(low, high, key, strict=True)):
        return None
    places = {Fraction(k - a, b - a) for a, b, k in zip(low, high, key, strict=True) if a != b}
    return places.pop() if len(places) == 1 else None


def _of_kinds(kinds: Sequence[Sequence[int]], follow: _Followed) -> tuple[PlacedReport, str]:
    """All of these programs from one of each kind and a few more, if all are alike; else kind by kind."""
    total = sum(map(len, kinds))
    report = PlacedReport()
    one = kinds[0][0]
    others = [kind[-1] for kind in kinds[1:]] + _sample(kinds[0], LONG if follow.apart else SAMPLE)[1:]
    follow.ahead([one, *others])
    first = follow([one])
    if not others or _are_alike(first, follow(others), len(others)):
        report.add_share(first, total, 1)
        return report, ""
    return _of_samples(kinds, follow)


def _of_samples(kinds: Sequence[Sequence[int]], follow: _Followed) -> tuple[PlacedReport, str]:
    """The whole from some programs of each kind; exact if all that stand for others are alike."""
    report, note = PlacedReport(), ""
    follow.ahead(number for kind in kinds for number in _sample(kind, follow.sample))
    for kind in kinds:
        sample = _sample(kind, follow.sample)
        part = follow(sample)
        report.add_share(part, len(kind), len(sample))
        if len(kind) > len(sample) and not _are_alike(follow(sample[:1]), part, len(sample)):
            note = f"programs differ: the counts are from {len(sample)} that stand for {len(kind):,}"
            report.exact = False
    return report, note


def _are_alike(one: Report, several: Report, number: int) -> bool:
    """Whether so many programs count as often what one counts."""
    return several.total == Counter({name: count * number for name, count in one.total.items()})


def _followed(
    program: LaneProgram, given: Given, programs: Sequence[int], sliced: Sliced, parts: Sequence[Sequence[int]]
) -> dict[int, Grouped]:
    """What each of the programs was counted in."""

    def follow(*, steady: bool, parts: Sequence[Sequence[int]]) -> dict[int, Grouped]:
        reports = {}
        for part in parts:
            report = Grouped()
            count(
                program, given.grid, given.scalars, programs=part, steady=steady, report=report, sliced=sliced,
                data=given.data, suppose=given.suppose, turns=given.turns,
            )  # fmt: skip
            reports.update(dict.fromkeys(part, report))
        return reports

    try:
        return follow(steady=True, parts=parts)
    except Uncountable:
        raise
    except (SimulationError, WeftError):  # of iterations that were left out: follow all of them
        return follow(steady=False, parts=[programs])
