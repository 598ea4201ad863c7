"""Assemble runs of a row that is aligned differently from the stored row, from the aligned vectors that contain them.

    vectors of the row       | 0 ... 7 | 8 ... 15 | 16 ... 23 | 24 ... 31 |        8 elements of bf16, 16 bytes
    a run, 6 bytes behind         3 ........ 10                                    words 1 to 5 from vector 0 on
    a run, 10 bytes behind           5 ........ 12                                 words 2 to 6 from vector 0 on

Weights (`w` of a norm) begin at an aligned address, while the rows that they multiply, and whose vectors decide which
elements a thread has, begin anywhere. Each run of weights then lies in two vectors. Its distance from the beginning of
the first is the same number for the whole program. Each lane loads the vector that has more of its run: the first, if
the distance is at most half a vector, and the next lane has the rest; otherwise the second, and the lane before has the
rest. So at most half a vector is exchanged by shuffles, and each sector of memory is requested once. Only the lane at
the edge of the warp, which has no neighbour, loads that half itself.

Which words belong to the run depends on the distance in words, which differs between programs but is uniform in each.
So there is code for each distance, in which words only have other names, and a branch that chooses among them:
selecting 5 words of 8 by the distance would take 11 instructions. A store has one such branch around its whole
computation (`at_each`). For elements smaller than words, the rest of the distance is one permutation of bytes for each
word. In a loop over runs, whose code is short, there is code for each distance in elements, and no permutation.

If runs are single words, each lane loads the two words that contain its run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.ir.lane import Block, Value

from .context import Context
from .row_runs import Runs

WORD_BYTES = 4
WORDS = "i32"


class Coming(NamedTuple):
    """What is on its way from memory, and what makes elements of it."""

    values: tuple[Value, ...]
    made_of: Callable[[Sequence[Value]], Value]

    def elements(self) -> Value:
        """The elements, when it is there."""
        return self.made_of(self.values)


class Only(NamedTuple):
    """A condition under which whole runs are loaded; otherwise what was loaded before stays, if anything was."""

    condition: Value
    before: Sequence[Value] = ()


class Distance(NamedTuple):
    """How far runs lie behind vectors, in code for one such distance."""

    words: int
    rest: int | None
    """The bytes beyond those words; None if they are not known."""


class Shifted:
    """How runs are made of the vectors or words in which they lie, in code for one distance or for all."""

    def __init__(
        self, c: Context, runs: Runs, elem: str, other: Value, hints: dict[str, Any], distance: Distance | None
    ) -> None:
        self.c, self.runs, self.elem = c, runs, elem
        self.each = WORD_BYTES // runs.size
        filled = c.build.rename(other, [0] * self.each)
        filled = c.build.add("pack", [filled], [(WORDS, 1)]).result if self.each > 1 else _as(c, filled, WORDS)
        lie = _Words if runs.vector == self.each else _Vectors
        self.lie = lie(c, runs, filled, hints, distance)

    def load(self, only: Only | None = None) -> Coming:
        """Load what they lie in; of whole runs only under a condition."""
        return Coming(self.lie.load(only), self.elements)

    def elements(self, loaded: Sequence[Value]) -> Value:
        """The elements of the runs."""
        c, lie = self.c, self.lie
        words, behind = lie.words(loaded[: lie.loads]), lie.behind
        if self.each == 1:
            return _as(c, words, self.elem)
        elements = c.build.add("unpack", [words], [(self.elem, words.count * self.each)]).result
        if not behind:
            return elements
        count, run = elements.count // len(self.runs.places), self.runs.run
        wanted = [k * count + i for k in range(len(self.runs.places)) for i in range(behind, behind + run)]
        return c.build.rename(elements, wanted)


def at_each(
    c: Context, runs: Runs, write: Callable[[Distance], Sequence[Value]], is_exact: bool = False
) -> list[Value]:
    """Code for each distance in words between runs and vectors, or if it is to be exact in elements, as `write` writes
    it; what the one that is taken has for results."""
    unit = min(runs.size, WORD_BYTES) if is_exact else WORD_BYTES
    count = runs.vector * runs.size // unit
    number = c.build.op("arith.shrui", [runs.distance, c.number(unit.bit_length() - 1)], "i32")

    def between(low: int, high: int) -> list[Value]:
        """For distances of at least `low` units and less than `high`."""
        if high - low == 1:
            words, rest = divmod(low * unit, WORD_BYTES)
            return list(write(Distance(words, rest if is_exact or runs.size >= WORD_BYTES else None)))
        middle, branches, kinds = (low + high) // 2, list[Block](), list[tuple[str, int]]()
        for bounds in ((middle, high), (low, middle)):
            with c.inside(Block()) as block:
                results = between(*bounds)
                if results:
                    c.build.add("yield", results)
            kinds = [(x.elem, x.count) for x in results]
            branches.append(block)
        return list(runs.if_warp(runs.compare(number, ">=", c.number(middle)), kinds, *branches).results)

    return between(0, count)


def distances_of(runs: Runs) -> int:
    """How many distances in words there are."""
    return runs.vector * runs.size // WORD_BYTES


def _in_words(c: Context, runs: Runs) -> Value:
    """How many words runs lie behind vectors."""
    return c.build.op("arith.shrui", [runs.distance, c.number(WORD_BYTES.bit_length() - 1)], "i32")


class _Words:
    """The words in which runs of one word lie, two of each."""

    loads, behind = 1, 0

    def __init__(self, c: Context, runs: Runs, filled: Value, hints: dict[str, Any], distance: Distance | None) -> None:
        self.c, self.runs, self.filled, self.hints = c, runs, filled, hints

    def load(self, only: Only | None) -> tuple[Value, ...]:
        """Load the words."""
        c, runs = self.c, self.runs
        places, masks = runs.at(runs.address(), (0, WORD_BYTES)), runs.masks(2, only and only.condition)
        before = only.before if only else ()
        instead = None if masks is None else before[0] if before else self.filled
        return (c.build.load("global", places, WORDS, 1, masks, instead, **self.hints),)

    def words(self, loaded: Sequence[Value]) -> Value:
        """The words of the runs."""
        (words,) = loaded
        pair = [self.c.build.rename(words, range(i, words.count, 2)) for i in (0, 1)]
        return _permuted(self.c, self.runs, *pair)


class _Vectors:
    """The vectors that have the greater part of each run, and what else the lane at the warp's edge needs."""

    def __init__(self, c: Context, runs: Runs, filled: Value, hints: dict[str, Any], distance: Distance | None) -> None:
        self.c, self.runs, self.filled, self.hints, self.distance = c, runs, filled, hints, distance
        self.behind = (distance.rest or 0) // runs.size if distance is not None else 0
        """How many elements lie before a run in the words that are given, if the distance is exact."""
        self.width = distances_of(runs)
        self.half = self.width // 2
        self.is_small = runs.size < WORD_BYTES
        self.vectors = runs.run // runs.vector
        """The number of vectors in a run's length."""
        self.is_far = None if distance is not None else runs.compare(_in_words(c, runs), ">=", c.number(self.half))
        self.loads = 2 if distance is None or self._missing(distance) else 1
        """The vectors; and what the lane at the edge needs of others, if it does."""
        lanes = c.program.lanes
        self.is_edge = runs.compare(c.lane(), "==", self._chosen(0, lanes - 1))
        self.neighbour = c.build.op("arith.andi", [c.plus(c.lane(), self._chosen(-1, 1)), c.number(lanes - 1)], "i32")

    def _chosen(self, far: int, near: int) -> Value:
        """`far` if the second vector has the greater part of a run, else `near`."""
        c, distance = self.c, self.distance
        if distance is not None:
            return c.number(far if distance.words >= self.half else near)
        assert self.is_far is not None
        return c.build.select(self.is_far, c.number(far), c.number(near))

    def load(self, only: Only | None) -> tuple[Value, ...]:
        """Load the vectors, and what the lane at the edge needs."""
        c, runs, bytes, step = self.c, self.runs, self.runs.vector * self.runs.size, self.runs.vector
        begin, count = runs.address(), len(runs.places)
        first = None if runs.are_whole else runs.less(runs.index(), runs.before)
        before = only.before if only else ()

        def load(number: int, start: Value, steps: Sequence[int], width: int, conditions: Sequence[Value]) -> Value:
            there = c.all_of([*conditions, *([only.condition] if only else [])])
            there = None if there is None else runs.each(there, count * len(steps) // there.count)
            instead = None if there is None else before[number] if before else self.filled
            return c.build.load("global", runs.at(start, steps), WORDS, width, there, instead, **self.hints)

        conditions = list[Value]()
        if first is not None:
            steps = c.build.linear([i * step for _ in runs.places for i in range(self.vectors)])
            mine = c.plus(runs.each(c.plus(first, self._chosen(step, 0)), self.vectors), steps)
            conditions = [runs.all_there(mine, bytes)]
        far = _further(c, begin, self._chosen(bytes, 0))
        loaded = [load(0, far, range(0, self.vectors * bytes, bytes), self.width, conditions)]
        if self.loads > 1:
            conditions = [self.is_edge]
            if first is not None:
                of_row = runs.all_there(c.plus(first, self._chosen(0, self.vectors * step)), bytes)
                conditions = [of_row, self.is_edge]
            at_edge = _further(c, begin, self._chosen(bytes // 2, self.vectors * bytes))
            loaded.append(load(1, at_edge, (0,), self.half, conditions))
        return (*loaded, *before[self.loads :])

    def _missing(self, distance: Distance) -> int:
        """How many words of a run a lane has not."""
        words = distance.words
        return words + self._has_rest(distance) if words < self.half else self.width - words

    def _has_rest(self, distance: Distance) -> bool:
        """Whether runs may begin within words, so that they lie in one word more."""
        return self.is_small and distance.rest != 0

    def words(self, loaded: Sequence[Value]) -> Value:
        """The words of the runs."""
        if self.distance is not None:
            return self._at(self.distance, loaded)
        (words,) = at_each(self.c, self.runs, lambda distance: [self._at(distance, loaded)])
        return words

    def _at(self, distance: Distance, loaded: Sequence[Value]) -> Value:
        """The words of the runs at a distance; if it is exact, the words in which they lie."""
        c, each, missing = self.c, self.width * self.vectors, self._missing(distance)
        is_near = distance.words < self.half
        mine, *edge = loaded
        moved = mine
        if missing:  # the first words of the next lane's first vector, or the last ones of the other's last one
            theirs = range(missing) if is_near else range(each - missing, each)
            at_edge = range(missing) if is_near else range(self.half - missing, self.half)
            sent = c.build.shuffle(_of_each(c, mine, each, theirs), self.neighbour)
            moved = c.build.select(self.is_edge, _of_each(c, edge[0], self.half, at_edge), sent)

        def some(start: int, count: int) -> Value:
            """`count` words of each run, from word `start` of its own vectors on; words outside of these come from the
            neighbour."""
            places = list[tuple[Value, int]]()
            for k in range(len(self.runs.places)):
                for i in range(start, start + count):
                    is_own = 0 <= i < each
                    at = k * each + i if is_own else k * missing + (i - each if is_near else i + missing)
                    places.append((mine if is_own else moved, at))
            return c.build.gather(places)

        start = distance.words if is_near else -missing
        if not self.is_small or distance.rest is not None:
            return some(start, each + self._has_rest(distance))
        return _permuted(c, self.runs, some(start, each), some(start + 1, each))


def _as(c: Context, value: Value, elem: str) -> Value:
    return value if elem == value.elem else c.build.op("arith.bitcast", [value], elem)


def _of_each(c: Context, value: Value, each: int, registers: Sequence[int]) -> Value:
    """Some registers of each run, which has so many."""
    return c.build.rename(value, [k + i for k in range(0, value.count, each) for i in registers])


def _further(c: Context, address: Value, bytes: Value) -> Value:
    return c.build.op("arith.addi", [address, c.build.op("arith.extsi", [bytes], "i64")], "i64")


def _permuted(c: Context, runs: Runs, words: Value, behind: Value) -> Value:
    """Words whose bytes begin in some words and end in those behind them."""
    rest = c.build.op("arith.andi", [runs.distance, c.number(WORD_BYTES - 1)], "i32")
    selector = c.plus(c.build.op("arith.muli", [rest, c.number(0x1111)], "i32"), c.number(0x3210))
    each = {"each": WORD_BYTES // runs.size}
    return c.build.add("permute", [words, behind, selector], [(WORDS, words.count)], each).result
