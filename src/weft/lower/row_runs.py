"""Where a thread's runs in a row begin, which of them are whole, and the ends of the row, one element per lane.

    places        0 ... 7 | 8 ... 15 | ... | 1000 ... 1007 | 1008 ... 1015          runs of 8, shift 3, 1,001 elements
    elements   -3 ... 4   | 5 ... 12 | ... |  997 ... 1004 | beyond the row
               ragged       whole            ragged

A run is whole if everything that is loaded or stored with it belongs to the row. Other runs contain the first places of
the tile or the last ones of the row, each at most as many as half a warp has lanes. `Ends` has these elements one per
lane: the first places in the lower half of the lanes, and those from `tail` on in the upper half. If a run is read by
vectors that begin before it or end after it, it is whole only if these vectors are (`before`, `needed`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value
from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, Value
from weft.layouts import f2

from .context import Context, elem_of, tile_shape
from .memory import VECTOR_BYTES, runs_of


class Runs:
    """The runs of a thread in a row, and where the row begins and ends."""

    def __init__(self, c: Context, op: Operation, tile: SSAValue, is_aligned: bool = True) -> None:
        self.c, self.layout = c, c.layout(tile)
        self.run, self.tile = int_value(op.properties["run"]), tile_shape(tile)[0]
        self.size = max(8, ELEMENT_BITS[elem_of(tile.type)]) // 8
        self.order = runs_of(self.layout, self.run)
        """The layout's registers, run by run."""
        columns = self.layout.in_columns("register")
        self.places = [f2.multiply(columns, self.order[i]) for i in range(0, len(self.order), self.run)]
        """The first place of each run, in thread 0."""
        self.row, self.shift, self.end = c[op.operands[0]], c[op.operands[1]], c[op.operands[2]]
        lane = c.build.linear([0], *(self.layout.in_columns(dim) for dim in ("lane", "warp", "block")))
        self.first = self.less(lane, self.shift)
        """The number of the element at the first place of run 0: what is added to `places`."""
        self.are_whole = False
        """Whether it is known that all runs are whole."""
        self.moved: Value | None = None
        """In a loop over runs, how many places the first one of an iteration lies behind run 0."""
        self.vector = min(self.run, VECTOR_BYTES // self.size)
        """Elements of the aligned vectors that are loaded or stored at once."""
        self.distance = c.number(0)
        """The distance in bytes from a vector's beginning to a run's."""
        self.before = c.number(0)
        """How many elements must be there before a run, for it to be whole."""
        self.needed = c.number(self.run)
        """And how many from its first one on."""
        self.is_shifted = not is_aligned
        self.lies: object = None
        """What the distance follows from: rows of which that is equal have one distance."""
        if self.is_shifted:
            granule = self.vector * self.size
            is_based = min(c.facts.of(op.operands[0]).divisibility) % granule == 0
            begins = c.number(0) if is_based else c.build.op("arith.trunci", [self.row], "i32")
            self.lies = None if is_based else self.row, self.shift, self.size, granule
            start = self.less(begins, c.build.op("arith.muli", [self.shift, c.number(self.size)], "i32"))
            self.distance = c.build.op("arith.andi", [start, c.number(granule - 1)], "i32")
            self.before = c.build.op("arith.shrui", [self.distance, c.number(self.size.bit_length() - 1)], "i32")
            self.needed = self.less(c.number(self.run + self.vector), self.before)

    def parts(self) -> list[Runs]:
        """One run at a time."""
        parts = []
        for k, place in enumerate(self.places):
            part = copy(self)
            part.places, part.order = [place], self.order[k * self.run : (k + 1) * self.run]
            parts.append(part)
        return parts

    def later(self, number: Value, count: int, are_whole: bool = False) -> Runs:
        """The runs of an iteration of a loop over so many runs at a time."""
        c, later = self.c, copy(self)
        later.are_whole = are_whole
        later.moved = c.number(0)
        for low, high, step in self._even(count):
            part = c.build.op("arith.andi", [number, c.number((1 << high) - (1 << low))], "i32")
            part = c.build.op("arith.muli", [part, c.number(step >> low)], "i32")
            later.moved = c.plus(later.moved, part)
        later.first = c.plus(self.first, later.moved)
        later.places, later.order = self.places[:count], self.order[: count * self.run]
        return later

    def _even(self, count: int) -> list[tuple[int, int, int]]:
        """The bits of an iteration's number, those together that are each worth twice as much as the one before, and
        how many places the lowest of them is."""
        steps, parts = [self.places[count << i] for i in range((len(self.places) // count - 1).bit_length())], []
        begin = 0
        for bit in range(1, len(steps) + 1):
            if bit == len(steps) or steps[bit] != 2 * steps[bit - 1]:
                parts.append((begin, bit, steps[begin]))
                begin = bit
        return parts

    def iterations(self, count: int) -> tuple[Value, Value, Value]:
        """Of a loop over so many runs at a time: the first iteration in which all of a warp's elements are there, and a
        run more before and behind them; the first one after it in which they are not; and the first one in which none
        is."""
        c, some, margin = self.c, copy(self), self.run
        some.places = self.places[:count]
        index = some._of_warp()
        there = self._as_far(self.less(self.less(self.end, c.number(1)), index), count)
        index = self.less(index, c.number(margin))
        end = self._as_far(self.less(self.less(self.end, c.number(some._behind(margin))), index), count)
        begin = c.build.op("arith.shrui", [index, c.number(31)], "i32")  # only the first one may begin before the row
        return c.build.op("arith.minsi", [begin, end], "i32"), end, there

    def _as_far(self, most: Value, count: int) -> Value:
        """How many iterations of such a loop begin at most so many places behind the first one."""
        c, number = self.c, self.c.number(0)
        for low, high, step in reversed(self._even(count)):
            times = c.build.op("arith.shrsi", [most, c.number(step.bit_length() - 1)], "i32")
            times = c.build.op("arith.minsi", [times, c.number((1 << high - low) - 1)], "i32")
            most = self.less(most, c.build.op("arith.muli", [times, c.number(step)], "i32"))
            number = c.plus(number, c.build.op("arith.muli", [times, c.number(1 << low)], "i32"))
        return c.build.op("arith.maxsi", [c.plus(number, c.number(1)), c.number(0)], "i32")

    # -- numbers of elements ------------------------------------------------------------------------------------------

    def less(self, a: Value, b: Value) -> Value:
        return self.c.build.op("arith.subi", [a, b], "i32")

    def compare(self, a: Value, how: str, b: Value) -> Value:
        predicate = {"==": 0, "!=": 1, "<": 2, ">=": 5, "<u": 6}[how]
        return self.c.build.op("arith.cmpi", [a, b], "i1", predicate=predicate)

    def index(self) -> Value:
        """The number of the first element of each run; negative in the first run of all."""
        return self.c.plus(self.first, self.c.build.linear(self.places))

    def all_there(self, index: Value, size: int) -> Value:
        """Whether so many bytes from an element on are."""
        limit = self.less(self.end, self.c.number(size // self.size - 1))
        return self.compare(index, "<u", self.c.build.op("arith.maxsi", [limit, self.c.number(0)], "i32"))

    def whole(self, index: Value | None = None) -> Value:
        """Whether all that is loaded or stored with a run is there: with each of a thread's, or those that begin at
        some elements."""
        limit = self.c.plus(self.less(self.end, self.needed), self.c.number(1))
        limit = self.c.build.op("arith.maxsi", [self.less(limit, self.before), self.c.number(0)], "i32")
        return self.compare(self.less(index or self.index(), self.before), "<u", limit)

    def masks(self, times: int, *others: Value | None) -> Value | None:
        """Whether runs are whole and other conditions hold, each for so many accesses; None if they all are known to
        be."""
        whole = self.c.all_of([None if self.are_whole else self.whole(), *others])
        if whole is None:
            return None
        return self.each(whole, times if whole.count > 1 else times * len(self.places))

    def ragged(self) -> Value:
        """Whether only a part is. (In other words than `whole`, so that its predicates need not be kept for this.)"""
        c = self.c
        index = self.index()
        rest = self.less(self.less(self.end, index), c.number(1))
        ends = self.compare(rest, "<u", self.less(self.needed, c.number(1)))
        begins = self.compare(index, "<", self.before)
        begins = c.build.op("arith.andi", [begins, self.compare(index, "<", self.end)], "i1")
        return c.build.op("arith.ori", [ends, begins], "i1")

    def tail(self) -> Value:
        """The place of the first run, beside those at the beginning, that may not be whole, however it is loaded."""
        behind = self.less(self.c.plus(self.end, self.shift), self.c.number(self.run))  # 2 runs are needed at most
        return self.c.build.op("arith.andi", [behind, self.c.number(-self.run)], "i32")

    def any_there(self) -> Value:
        """Whether any element of a warp's runs is."""
        return self.in_warp(self.compare(self._of_warp(), "<", self.end))

    def all_of_warp(self) -> Value:
        """Whether all elements of a warp's runs are."""
        c, index, behind = self.c, self._of_warp(), self._behind(0)
        limit = c.build.op("arith.maxsi", [self.less(self.end, c.number(behind - 1)), c.number(0)], "i32")
        return self.in_warp(self.compare(index, "<u", limit))

    def _behind(self, margin: int) -> int:
        """How many elements there are from the first one of a warp's runs to the last one, with so many more before and
        behind them."""
        return max(self.places) - min(self.places) + sum(self.layout.in_columns("lane")) + self.run + 2 * margin

    def _of_warp(self) -> Value:
        """The number of the first element of a warp's runs."""
        c, (warps, blocks) = self.c, (self.layout.in_columns(dim) for dim in ("warp", "block"))
        warp = c.build.linear([0], (), warps, blocks, uniform=True)
        index = c.plus(self.less(warp, self.shift), c.number(min(self.places)))
        return index if self.moved is None else c.plus(index, self.moved)

    def there(self) -> Value:
        """Whether each element of the runs is of the row."""
        c = self.c
        numbers = c.build.linear([e for _ in self.places for e in range(self.run)])
        numbers = c.plus(self.each(self.index(), self.run), numbers)
        inside = c.build.op("arith.andi", [numbers, c.number(self.tile - 1)], "i32")  # places wrap around in run 0
        return self.compare(inside, "<", self.end)

    def in_warp(self, condition: Value) -> Value:
        """Whether it holds in any lane; an assembler sees by the ballot that it is whole warps that go one way."""
        return self.c.build.holds_somewhere(condition, self.c.program.lanes)

    def of_warp(self, place: Value) -> Value:
        """Whether a place is of this warp."""
        columns = [self.layout.in_columns(dim) for dim in ("warp", "block")]
        warp_bits, bits = self.c.build.linear([0], (), *columns), sum(dict.fromkeys(x for xs in columns for x in xs))
        return self.compare(self.c.build.op("arith.andi", [place, self.c.number(bits)], "i32"), "==", warp_bits)

    def if_warp(self, condition: Value, kinds: Sequence[tuple[str, int]], taken: Block, otherwise: Block) -> LaneOp:
        """A branch that whole warps take."""
        return self.c.build.add("if", [condition], kinds, {"of_warp": True}, [taken, otherwise])

    # -- addresses ----------------------------------------------------------------------------------------------------

    def address(self) -> Value:
        """The address of run 0, or of the vector that it begins in."""
        start = self.of_index(self.first)
        if not self.is_shifted:
            return start
        return self.c.build.op("arith.subi", [start, self.c.build.op("arith.extsi", [self.distance], "i64")], "i64")

    def of_index(self, index: Value) -> Value:
        """The addresses of elements."""
        c = self.c
        far = c.build.op("arith.extsi", [index], "i64")
        far = c.build.op("arith.muli", [far, c.number(self.size, "i64")], "i64")
        return c.build.op("arith.addi", [self.row, far], "i64")

    def at(self, start: Value, steps: Sequence[int]) -> Value:
        """Addresses of each run and so many bytes behind it, all steps of a run one after the other."""
        distances = self.c.build.linear([p * self.size + s for p in self.places for s in steps])
        return self.c.build.op("arith.addi", [start, self.c.build.op("arith.extsi", [distances], "i64")], "i64")

    def each(self, value: Value, times: int) -> Value:
        """What there is of each run, so many times."""
        return self.c.build.rename(value, [k for k in range(value.count) for _ in range(times)])

    def vectors(self) -> Value:
        """The addresses of the vectors that runs are made of."""
        return self.at(self.address(), range(0, self.run * self.size, self.vector * self.size))

    def number(self) -> dict[str, int]:
        """For an access: which of the rows it is whose elements are each for one warp alone."""
        copies = self.layout.free_variable_masks()
        if copies["warp"] or copies["block"]:
            return {}
        made = self.shift.op
        shift = made.attrs["value"] if made is not None and made.name == "constant" else self.shift
        return {"row": self.c.rows.setdefault((self.row, shift, self.size, self.layout), len(self.c.rows))}


class Ends:
    """The places of a row in which runs may not be whole, one a lane, in the warps whose they are."""

    def __init__(self, runs: Runs) -> None:
        c = runs.c
        self.runs, self.half = runs, c.program.lanes // 2
        assert 2 * runs.run <= self.half, runs.run
        lane = c.lane()
        self.tail = runs.tail()
        is_first = runs.compare(lane, "<", c.number(self.half))
        behind = runs.less(c.plus(self.tail, lane), c.number(self.half))
        self.place = c.build.select(is_first, lane, behind)
        index = runs.less(self.place, runs.shift)
        is_end = runs.compare(index, "<", c.number(0))  # the first places have the end of the tile
        self.index = c.build.select(is_end, c.plus(index, c.number(runs.tile)), index)
        once = runs.compare(runs.less(behind, c.number(self.half)), "<u", c.number(runs.tile - self.half))
        conditions = [runs.compare(self.index, "<u", runs.end), runs.of_warp(self.place)]
        self.there = c.all_of([*conditions, c.build.op("arith.ori", [is_first, once], "i1")])
        """Whether there is such an element, for this warp, that no other lane has."""
        assert self.there is not None
        self.mine = runs.in_warp(self.there)
        """Whether a warp has any."""

    def lane_of(self, runs: Runs) -> Value:
        """The lane that has the element at each place of some runs."""
        c = runs.c
        place = c.plus(runs.index(), runs.shift)
        behind = c.plus(runs.less(place, self.tail), c.number(self.half))
        source = c.build.select(runs.compare(place, "<", c.number(self.half)), place, behind)
        lanes = c.plus(runs.each(source, runs.run), c.build.linear([e for _ in runs.places for e in range(runs.run)]))
        return c.build.op("arith.andi", [lanes, c.number(c.program.lanes - 1)], "i32")

    def run_begin(self) -> Value:
        """The number of the first element of the run that a lane's element is of."""
        runs = self.runs
        place = runs.c.build.op("arith.andi", [self.place, runs.c.number(-runs.run)], "i32")
        return runs.less(place, runs.shift)
