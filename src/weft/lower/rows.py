"""Rows that begin at any address: whole runs by vectors, the first and the last by elements (passes/align_rows.py).

    %whole = %first + 8 k  <u  %end - 7                           a predicate for each run
    %v     = load global %row + 2 (%first + 8 k), 8 elements, where whole
    %ends  = load global, 1 element a lane                        the first and the last runs of the row
    store global %out + ..., f(%v), 8 elements, where whole
    if %mine { store global, f(%ends), 1 element a lane }

where %first is the place of a lane's first run less the shift: negative only in the first run, whose first elements are
those of the end of the tile. `mine` holds in the warps that have a run which is not whole, two of them mostly: the
branch is a warp's own, and nothing in it waits for memory. So an element that is no element of the row is not read.

What is not only stored, but reduced as well, has its ends among the others: `%v = if %mine { select(%ragged,
shuffle(%ends), %v) } else { %v }`. And where what is stored cannot be computed from the ends alone (a row that a loop
carries, another mask), the runs that are not whole are stored element by element.

A run that is not aligned, of weights beside a row, is loaded element by element where elements are words. Of smaller
ones, the words are loaded in which it lies, and their bytes are moved down by the distance, which is one number for the
whole kernel: 8 elements of bf16 are in words 0 to 4, if the first is in the upper half of word 0. What is loaded so is
mostly the same for all rows, so that it is in the cache, and what counts are instructions: aligned vectors, whose words
are shuffled to the lane before and chosen by the distance, take 25 where this takes 9 for 8 elements of bf16, and 14
where this takes 4 for 4 of f32.

What comes after a load in memory's time, joining and moving, is written where its result is first used, so that the
loads of several rows are on their way together.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir.lane import Block, Value

from .context import Context, elem_of, lowering
from .memory import back, hints_of
from .row_parts import geometry_of, parts_of
from .row_runs import WORD_BYTES, Runs

WORDS = "i32"
ON_THE_WAY = {8: (128, 2), 32: (64, 1)}
"""Bytes of a row that a thread asks for at a time, and parts of one that is not aligned with it, by the block's warps.
Two blocks of 16 warps have 64 registers a thread, and 64 KB of rows on the way; a multiprocessor of an H100 needs 17 KB
(25 bytes a nanosecond for 700). Where only words of one row are loaded, there are registers for one part more: what is
stored waits for them part by part, and with one part on its way that takes as long as memory does."""
QUIET = ("arith.", "math.", "tt.", "weft.load_row")
LOUD = (
    *("tt.store", "tt.atomic", "tt.debug_barrier", "tt.call", "tt.print", "tt.assert", "weft.check", "tt.descriptor"),
    *("tt.elementwise_inline_asm", "tt.extern"),
)
"""What may and may not stand between a row and the store that it is loaded for."""


# -- loads -------------------------------------------------------------------------------------------------------------


class Load:
    """A row that is loaded: when, and what is left to do with what has come."""

    def __init__(self, c: Context, op: Operation) -> None:
        self.c, self.hints, result = c, hints_of(op), op.results[0]
        self.elem, self.other = elem_of(result.type), c[op.operands[3]]
        self.is_aligned = "aligned" in op.properties
        self.runs = Runs(c, op, result, self.is_aligned)
        self.parts = self.runs.parts()
        if self.is_aligned:
            self.hints |= self.runs.number()
        parts = parts_of(c, op)
        parts.others[result] = self.other
        self.ends = parts.ends_of(c, self.runs, geometry_of(op, result))
        address = self.runs.of_index(self.ends.index)
        self.at_ends = c.build.load("global", address, self.elem, 1, self.ends.there, self.other, **self.hints)
        parts.ends[result] = self.at_ends
        self.loaded: dict[int, Callable[[], Value]] = {}
        """What gives the elements of parts that are on their way."""
        new, same = next(ahead for warps, ahead in ON_THE_WAY.items() if c.program.warps <= warps)
        self.ahead = max(1, new // (self.runs.run * self.runs.size)) if self.is_aligned else same
        """Parts that are loaded ahead: what is aligned is new, and far away; what is not is mostly the same for all."""
        self.begun = 0

    def begin_to(self, last: int) -> None:
        """Load as many parts, where they are not on their way yet."""
        while self.begun <= min(last, len(self.parts) - 1):
            self.loaded[self.begun] = self.load(self.parts[self.begun])
            self.begun += 1

    def end(self, k: int) -> Value:
        """The elements of a part, as far as its runs are whole."""
        return self.loaded.pop(k)()

    def load(self, runs: Runs) -> Callable[[], Value]:
        """Load some runs; gives what makes their elements of what has come."""
        if runs.is_shifted:
            return _by_words(self.c, runs, self.elem, self.other, self.hints)
        masks = runs.each(runs.whole(), runs.run // runs.vector)
        loaded = self.c.build.load("global", runs.vectors(), self.elem, runs.vector, masks, self.other, **self.hints)
        return lambda: loaded

    def joined(self, value: Value) -> Value:
        """All elements of the row: in warps that have its ends, with them in the runs that are not whole."""
        c, runs = self.c, self.runs
        with c.inside(Block()) as taken:
            at_end = c.build.shuffle(c.build.rename(self.at_ends, [0] * value.count), self.ends.lane_of(runs))
            c.build.add("yield", [c.build.select(runs.each(runs.ragged(), runs.run), at_end, value)])
        with c.inside(Block()) as otherwise:
            c.build.add("yield", [value])
        return runs.if_warp(self.ends.mine, [(self.elem, value.count)], taken, otherwise).result


@lowering("weft.load_row")
def _load(c: Context, op: Operation) -> None:
    result, load = op.results[0], Load(c, op)
    if _is_for_store(c, op, load.is_aligned):
        parts_of(c, op).loads[result] = load
        if load.is_aligned:
            load.begin_to(load.ahead - 1)
        return
    loaded = load.load(load.runs)

    def joined() -> Value:
        return c.build.rename(load.joined(loaded()), back(load.runs.layout, load.runs.order))

    if all(use.operation.parent is op.parent for use in result.uses):
        c.waiting[result] = joined
    else:
        c[result] = joined()


def _is_for_store(c: Context, op: Operation, is_aligned: bool) -> bool:
    """Whether a row is for one store alone, so that it can be loaded run by run when it is stored.

    Nothing may be written before, nor by this store unless it is of the same elements.
    """
    sinks = parts_of(c, op).sinks.get(op.results[0], ())
    if len(sinks) != 1 or sinks[0].name != "weft.store_row":
        return False
    (store,) = sinks
    read, written = _argument(op.operands[0]), _argument(store.operands[0])
    if not is_aligned and (read is None or written is None or read is written):
        return False
    between = op.next_op
    while between is not None and between is not store:
        if not between.name.startswith(QUIET) or between.name.startswith(LOUD):
            return False
        between = between.next_op
    return True


def _argument(pointer: SSAValue) -> SSAValue | None:
    """The argument of the kernel that an address is computed from."""
    while isinstance(pointer.owner, Operation):
        if pointer.owner.name != "tt.addptr":
            return None
        pointer = pointer.owner.operands[0]
    function = pointer.owner.parent_op()
    return pointer if function is not None and function.name == "tt.func" else None


# -- runs that are not aligned -----------------------------------------------------------------------------------------


def _by_words(c: Context, runs: Runs, elem: str, other: Value, hints: dict[str, Any]) -> Callable[[], Value]:
    """Load the words in which runs of small elements lie, one more than a run has; gives what moves their bytes down.

    A word that two lanes need, or two accesses, is in the cache when it is loaded again.
    """
    length = runs.run * runs.size
    count, each = length // WORD_BYTES, WORD_BYTES // runs.size
    places = runs.at(runs.address(), range(0, length + WORD_BYTES, WORD_BYTES))
    filled = c.build.add("pack", [c.build.rename(other, [0] * each)], [(WORDS, 1)]).result
    masks = runs.each(runs.whole(), count + 1)
    loaded = c.build.load("global", places, WORDS, 1, masks, filled, **hints)

    def some(start: int, end: int) -> Value:
        """Some words of each run."""
        return c.build.rename(loaded, [k + i for k in range(0, loaded.count, count + 1) for i in range(start, end)])

    def moved() -> Value:
        selector = c.plus(c.build.op("arith.muli", [runs.distance, c.number(0x1111)], "i32"), c.number(0x3210))
        pair = [some(0, count), some(1, count + 1)]
        permuted = c.build.add("permute", [*pair, selector], [(WORDS, pair[0].count)], {"each": each}).result
        return c.build.add("unpack", [permuted], [(elem, permuted.count * each)]).result

    return moved


# -- stores ------------------------------------------------------------------------------------------------------------


@lowering("weft.store_row")
def _store(c: Context, op: Operation) -> None:
    value, parts = op.operands[3], parts_of(c, op)
    c.has_stored = True
    runs, geometry = Runs(c, op, value), geometry_of(op, value)
    hints = hints_of(op) | runs.number() | {"part": len(c.rows)}
    c.rows[op] = len(c.rows)
    once = c.all_of(c.once(runs.layout, cluster=True))
    ends = parts.ends_of(c, runs, geometry)
    leaves = parts.leaves(value)
    loads = [parts.loads[x] for x in leaves if x in parts.loads]
    for leaf in leaves:
        if leaf not in parts.loads and leaf not in parts.kept:
            _ = c[leaf]  # made before the branches
    shifted = [load for load in loads if load.runs.is_shifted]
    is_alone = len(loads) == 1 and loads[0].ahead == 1 and loads[0].runs.size >= WORD_BYTES
    is_apart = parts.is_stored(op, value)
    is_skipped = is_apart and len(runs.places) > 1
    for k, part in enumerate(runs.parts()):
        for load in loads:
            load.begin_to(k + load.ahead + is_alone)
        any_there, body = parts.any_there(c, part, geometry, k) if is_skipped else None, Block()
        with c.inside(body) if any_there is not None else nullcontext():
            stored = parts.of_run(c, value, k, part, is_apart)[value]
            if stored.count == 1:
                stored = c.build.rename(stored, [0] * len(part.order))
            whole = c.all_of([part.whole(), *(load.parts[k].whole() for load in shifted), once])
            assert whole is not None
            masks = part.each(whole, runs.run // runs.vector)
            c.build.store("global", part.vectors(), stored, runs.vector, masks, **hints)
            if not is_apart:
                with c.inside(Block()) as taken:
                    _store_ends(c, part, stored, once, hints)
                part.if_warp(ends.mine, (), taken, Block())
        if any_there is not None:
            part.if_warp(any_there, (), body, Block())
    if is_apart:
        with c.inside(Block()) as taken:
            start = ends.run_begin()
            whole = c.all_of([runs.whole(start), *(load.runs.whole(start) for load in shifted)])
            assert whole is not None
            mask = c.all_of([ends.there, c.negated(whole), once])
            c.build.store("global", runs.of_index(ends.index), parts.of_ends(c, value, ends), 1, mask, **hints)
        runs.if_warp(ends.mine, (), taken, Block())


def _store_ends(c: Context, runs: Runs, stored: Value, once: Value | None, hints: dict[str, Any]) -> None:
    """Store ragged runs element by element: what is there of them, and what the first one has of the tile's end."""
    ragged, index, each = c.all_of([runs.ragged(), once]), runs.index(), range(runs.run)
    assert ragged is not None
    rest = c.build.select(ragged, runs.less(runs.end, index), c.number(0))
    numbers = c.build.linear([e for _ in runs.places for e in each])
    address = runs.at(runs.address(), range(0, runs.run * runs.size, runs.size))
    active = runs.compare(numbers, "<", runs.each(rest, runs.run))
    if 0 not in runs.places:
        c.build.store("global", address, stored, 1, active, **hints)
        return
    first = runs.places.index(0)
    of_first = [first * runs.run + e for e in each]
    early = runs.less(c.number(0), c.build.rename(index, [first]))  # so many are of the tile's end
    both = c.build.add("join", [early, c.number(0)], [("i32", 2)]).result
    least = runs.each(c.build.rename(both, [int(k != first) for k in range(len(runs.places))]), runs.run)
    active = c.build.op("arith.andi", [active, runs.compare(numbers, ">=", least)], "i1")
    c.build.store("global", address, stored, 1, active, **hints)
    rest = runs.less(c.build.rename(rest, [first]), c.number(runs.tile))
    most = c.build.op("arith.minsi", [rest, early], "i32")
    end = c.build.op("arith.addi", [c.build.rename(address, of_first), c.number(runs.tile * runs.size, "i64")], "i64")
    wrapped = runs.compare(c.build.linear(list(each)), "<", most)
    c.build.store("global", end, c.build.rename(stored, of_first), 1, wrapped, **hints)
