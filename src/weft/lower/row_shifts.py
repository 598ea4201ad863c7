"""Runs of rows that are aligned otherwise than the stored one, made of the aligned vectors in which they lie.

    vectors of the row       | 0 ... 7 | 8 ... 15 | 16 ... 23 | 24 ... 31 |        8 elements of bf16, 16 bytes
    a run, 6 bytes behind         3 ........ 10                                    words 1 to 5 from vector 0 on
    a run, 10 bytes behind           5 ........ 12                                 words 2 to 6 from vector 0 on

Weights (`w` of a norm) begin at an aligned address, while the rows that they multiply, and whose vectors decide which
elements a thread has, begin anywhere. Each run lies in two vectors then, at a distance behind the first of them that is
one number for the program. Each lane loads the vector that has more of its run: up to half a vector, that is the first,
and the next lane has the rest of the second; beyond that it is the second, and the lane before has the rest of the
first. So at most half a vector is exchanged by shuffles, and each sector of memory is requested once. Only the lane at
the edge of the warp, which has no neighbour, loads that half itself.

Which words these are depends on the distance in words. All programs of one launch differ in it, but each takes one way,
so there is code for each distance, in which words only have other names, and a branch that chooses: choosing 5 words of
8 by the distance takes 11 instructions instead. A store has one such branch around all that it does (`at_each`). What
remains of the distance, for elements smaller than words, is one permutation of bytes for each word. In a loop
over runs, whose code is short, distances are exact: there is code for each distance in elements, and no permutation.

Where runs are single words, each lane loads the two words in which a run lies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from weft.ir.lane import Block, Value

from .context import Context
from .row_runs import Runs

WORD_BYTES = 4
WORDS = "i32"


class Distance(NamedTuple):
    """How far runs lie behind vectors, in code for one such distance."""

    words: int
    rest: int | None
    """The bytes beyond those words; None if they are not known."""


def shifted(
    c: Context, runs: Runs, elem: str, other: Value, hints: dict[str, Any], distance: Distance | None = None
) -> Callable[[], Value]:
    """Load what runs lie in; gives what makes their elements of what has come, in code for one distance or for all."""
    each = WORD_BYTES // runs.size
    filled = c.build.rename(other, [0] * each)
    filled = c.build.add("pack", [filled], [(WORDS, 1)]).result if each > 1 else _as(c, filled, WORDS)
    lie = _Words if runs.vector == each else _Vectors
    load = lie(c, runs, filled, hints, distance)

    def moved() -> Value:
        words, behind = load.words(), load.behind
        if each == 1:
            return _as(c, words, elem)
        elements = c.build.add("unpack", [words], [(elem, words.count * each)]).result
        if not behind:
            return elements
        count = elements.count // len(runs.places)
        wanted = [k * count + i for k in range(len(runs.places)) for i in range(behind, behind + runs.run)]
        return c.build.rename(elements, wanted)

    return moved


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

    def __init__(self, c: Context, runs: Runs, filled: Value, hints: dict[str, Any], distance: Distance | None) -> None:
        self.c, self.runs, self.behind = c, runs, 0
        places, masks = runs.at(runs.address(), (0, WORD_BYTES)), runs.masks(2)
        self.loaded = c.build.load("global", places, WORDS, 1, masks, filled if masks else None, **hints)

    def words(self) -> Value:
        """The words of the runs."""
        count = self.loaded.count
        pair = [self.c.build.rename(self.loaded, range(i, count, 2)) for i in (0, 1)]
        return _permuted(self.c, self.runs, *pair)


class _Vectors:
    """The vectors that have the greater part of each run, and what else the lane at the warp's edge needs."""

    def __init__(self, c: Context, runs: Runs, filled: Value, hints: dict[str, Any], distance: Distance | None) -> None:
        self.c, self.runs, self.distance = c, runs, distance
        self.behind = (distance.rest or 0) // runs.size if distance is not None else 0
        """How many elements lie before a run in the words that are given, if the distance is exact."""
        self.width = distances_of(runs)
        self.half = self.width // 2
        self.is_small = runs.size < WORD_BYTES
        lanes, bytes, step = c.program.lanes, runs.vector * runs.size, runs.vector
        self.vectors = runs.run // runs.vector
        """As many as a run is long."""
        is_far = None if distance is not None else runs.compare(_in_words(c, runs), ">=", c.number(self.half))

        def chosen(far: int, near: int) -> Value:
            if distance is not None:
                return c.number(far if distance.words >= self.half else near)
            assert is_far is not None
            return c.build.select(is_far, c.number(far), c.number(near))

        self.is_edge = runs.compare(c.lane(), "==", chosen(0, lanes - 1))
        self.neighbour = c.build.op("arith.andi", [c.plus(c.lane(), chosen(-1, 1)), c.number(lanes - 1)], "i32")
        first, begin = runs.less(runs.index(), runs.before), runs.address()
        steps = c.build.linear([i * step for _ in runs.places for i in range(self.vectors)])
        places = runs.at(_further(c, begin, chosen(bytes, 0)), range(0, self.vectors * bytes, bytes))
        if runs.are_whole:
            self.mine = c.build.load("global", places, WORDS, self.width, **hints)
        else:
            mine = c.plus(runs.each(c.plus(first, chosen(step, 0)), self.vectors), steps)
            there = runs.all_there(mine, bytes)
            self.mine = c.build.load("global", places, WORDS, self.width, there, filled, **hints)
        self.edge: Value | None = None
        if distance is None or self._missing(distance):
            is_there = runs.each(self.is_edge, len(runs.places))
            if not runs.are_whole:
                of_row = runs.all_there(c.plus(first, chosen(0, self.vectors * step)), bytes)
                is_there = c.build.op("arith.andi", [of_row, self.is_edge], "i1")
            places = runs.at(_further(c, begin, chosen(bytes // 2, self.vectors * bytes)), (0,))
            self.edge = c.build.load("global", places, WORDS, self.half, is_there, filled, **hints)

    def _missing(self, distance: Distance) -> int:
        """How many words of a run a lane has not."""
        words = distance.words
        return words + self._has_rest(distance) if words < self.half else self.width - words

    def _has_rest(self, distance: Distance) -> bool:
        """Whether runs may begin within words, so that they lie in one word more."""
        return self.is_small and distance.rest != 0

    def words(self) -> Value:
        """The words of the runs."""
        if self.distance is not None:
            return self._at(self.distance)
        (words,) = at_each(self.c, self.runs, lambda distance: [self._at(distance)])
        return words

    def _at(self, distance: Distance) -> Value:
        """The words of the runs at a distance; if it is exact, the words in which they lie."""
        c, each, missing = self.c, self.width * self.vectors, self._missing(distance)
        is_near = distance.words < self.half
        moved = self.mine
        if missing:  # the first words of the next lane's first vector, or the last ones of the other's last one
            theirs = range(missing) if is_near else range(each - missing, each)
            at_edge = range(missing) if is_near else range(self.half - missing, self.half)
            assert self.edge is not None
            sent = c.build.shuffle(_of_each(c, self.mine, each, theirs), self.neighbour)
            moved = c.build.select(self.is_edge, _of_each(c, self.edge, self.half, at_edge), sent)

        def some(start: int, count: int) -> Value:
            """So many words of each run, from one on of its own vectors; those before are the other's."""
            places = list[tuple[Value, int]]()
            for k in range(len(self.runs.places)):
                for i in range(start, start + count):
                    is_own = 0 <= i < each
                    at = k * each + i if is_own else k * missing + (i - each if is_near else i + missing)
                    places.append((self.mine if is_own else moved, at))
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
