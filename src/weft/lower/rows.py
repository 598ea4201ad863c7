"""Rows that begin at any address: whole runs by vectors, the first and the last by elements (passes/align_rows.py).

    %whole = %first + 8 k  <u  %end - 7                           a predicate for each run
    %v     = load global %row + 2 (%first + 8 k), 8 elements, where whole
    %ends  = load global, 1 element a lane                        the first and the last runs of the row
    store global %out + ..., f(%v), 8 elements, where whole
    if %mine { store global, f(%ends), 1 element a lane }

where %first is the place of a lane's first run less the shift: negative only in the first run, whose first elements are
those of the end of the tile. `mine` holds in the warps that have a run which is not whole, mostly two of them: each
warp branches for itself, and nothing in the branch waits for memory. So nothing outside of the row is read.

If a value is not only stored but also reduced, its ends are merged into its runs: `%v = if %mine { select(%ragged,
shuffle(%ends), %v) } else { %v }`. If the stored value cannot be computed from the ends alone (because a loop carries
the row, or there is another mask), the runs that are not whole are stored element by element.

A run of weights beside a row may be unaligned, and is then assembled from the vectors that contain it (row_shifts.py).
How that is done depends on the distance in words, so the whole store is written once for each distance, if it is short.

In a loop over runs (row_parts.py), the weights of an iteration are loaded in the iteration before, and those of the
first iteration before the last reduction (passes/early_loads.py). Runs that are not whole have a loop of their own.

Operations that only rearrange a loaded value are written where the result is first used, so that the loads of several
rows are in flight together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from copy import copy
from itertools import islice
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir.lane import Block, Value

from .context import Context, elem_of, lowering
from .kept_rows import Kept
from .memory import back, hints_of
from .next_rows import ask_for_next
from .row_parts import AT_A_TIME, geometry_of, is_quiet_until, parts_of
from .row_runs import Runs
from .row_shifts import WORD_BYTES, Coming, Distance, Only, Shifted, at_each

ON_THE_WAY = {8: 128, 32: 64}
"""Bytes of a row that a thread asks for at a time, by the block's warps.
Two blocks of 16 warps have 64 registers a thread, and 64 KB of rows on the way; a multiprocessor of an H100 needs 17 KB
(25 bytes a nanosecond for 700). Where only words of one row are loaded, there are registers for one part more: what is
stored waits for them part by part, and with one part on its way that takes as long as memory does."""

MOST_COPIED = 128
"""Elements of a thread, of all rows that lie otherwise, up to which the store is written once for each distance. A
layer norm of 50,257 elements of bf16 by 16 warps has 256, and 145 KB of code then, more than the instruction cache: it
takes 338 us on an H100, and 279 where words are loaded one by one."""


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
        self.loaded: dict[int, Coming] = {}
        """The parts that are on their way."""
        new = next(bytes for warps, bytes in ON_THE_WAY.items() if c.program.warps <= warps)
        self.ahead = max(1, new // (self.runs.run * self.runs.size)) if self.is_aligned else 1
        """Parts that are loaded ahead: what is aligned is new, and far away; what is not is mostly the same for all."""
        self.begun = 0
        self.first: list[Coming] = []
        """What is on its way for the first iteration of a loop over runs."""
        self.distance: Distance | None = None
        """In code for one distance between runs and vectors, that distance."""

    def at(self, distance: Distance | None) -> Load:
        """This load in code for one such distance: what is on its way goes on from here."""
        load = copy(self)
        load.loaded, load.distance = dict(self.loaded), distance
        return load

    @property
    def is_untouched(self) -> bool:
        """Whether nothing of it is on its way."""
        return not self.begun

    def later(self, number: Value, count: int, are_whole: bool) -> Load:
        """The parts of an iteration of a loop over so many parts at a time. None is on its way."""
        load = copy(self)
        load.runs = self.runs.later(number, count, are_whole)
        load.parts, load.loaded, load.begun = load.runs.parts(), {}, 0
        return load

    def begin_to(self, last: int) -> None:
        """Load as many parts, where they are not on their way yet."""
        while self.begun <= min(last, len(self.parts) - 1):
            self.loaded[self.begun] = self.load(self.parts[self.begun])
            self.begun += 1

    def arrive(self) -> None:
        """Each part is waited for where it is used."""

    def end(self, k: int) -> Value:
        """The elements of a part, as far as its runs are whole."""
        return self.loaded.pop(k).elements()

    def load(self, runs: Runs, only: Only | None = None) -> Coming:
        """Load some runs; those that are whole and not aligned only under a condition, if one is given."""
        if runs.is_shifted:
            return self.shifted(runs).load(only)
        masks = runs.masks(runs.run // runs.vector)
        other = None if masks is None else self.other
        loaded = self.c.build.load("global", runs.vectors(), self.elem, runs.vector, masks, other, **self.hints)
        return Coming((loaded,), lambda values: values[0])

    def shifted(self, runs: Runs) -> Shifted:
        """How some runs that are not aligned are loaded."""
        return Shifted(self.c, runs, self.elem, self.other, self.hints, self.distance)

    def begin_loop(self) -> None:
        """Load what the first iteration of a loop over whole runs stores, for any distance."""
        begin, end, _ = self.runs.iterations(AT_A_TIME)
        is_any = self.runs.compare(begin, "<", end)
        self.first = [self.load(part, Only(is_any)) for part in self.later(begin, AT_A_TIME, are_whole=True).parts]

    def come(self, parts: Sequence[Sequence[Value]]) -> None:
        """Take what has been loaded of all parts elsewhere."""
        self.begun = len(parts)
        self.loaded = {k: Coming(tuple(parts[k]), self.shifted(self.parts[k]).elements) for k in range(len(parts))}

    def joined(self, value: Value) -> Value:
        """All elements of the row: in warps that have its ends, with them in the runs that are not whole."""
        c, runs = self.c, self.runs
        with c.inside(Block()) as taken:
            c.build.add("yield", [self.with_ends(runs, value)])
        with c.inside(Block()) as otherwise:
            c.build.add("yield", [value])
        return runs.if_warp(self.ends.mine, [(self.elem, value.count)], taken, otherwise).result

    def with_ends(self, runs: Runs, value: Value | None = None) -> Value:
        """The elements of some runs, the row's ends in those that are not whole; elsewhere a value, or what is there
        instead of elements."""
        c, order = self.c, [0] * len(runs.order)
        at_end = c.build.shuffle(c.build.rename(self.at_ends, order), self.ends.lane_of(runs))
        return c.build.select(runs.each(runs.ragged(), runs.run), at_end, value or c.build.rename(self.other, order))


@lowering("weft.load_row")
def _load(c: Context, op: Operation) -> None:
    result, parts = op.results[0], parts_of(c, op)
    ask_for_next(c, op)
    load = Load(c, op)
    if result in parts.waiting:
        geometry = geometry_of(op, result)
        parts.loads[result] = Kept(c, load, parts.waiting[result], lambda part, k: parts.ends_in(c, part, geometry, k))
        return
    if _is_for_store(c, op, load.is_aligned):
        parts.loads[result] = load
        if load.is_aligned:
            load.begin_to(load.ahead - 1)
        elif parts.waits_whole:
            load.begin_loop()
        return
    loaded = load.load(load.runs)

    def joined() -> Value:
        return c.build.rename(load.joined(loaded.elements()), back(load.runs.layout, load.runs.order))

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
    return is_quiet_until(op, store)


def _argument(pointer: SSAValue) -> SSAValue | None:
    """The argument of the kernel that an address is computed from."""
    while isinstance(pointer.owner, Operation):
        if pointer.owner.name != "tt.addptr":
            return None
        pointer = pointer.owner.operands[0]
    function = pointer.owner.parent_op()
    return pointer if function is not None and function.name == "tt.func" else None


# -- stores ------------------------------------------------------------------------------------------------------------


@lowering("weft.store_row")
def _store(c: Context, op: Operation) -> None:
    parts = parts_of(c, op)
    c.has_stored = True
    store = _Store(c, op)
    leaves = parts.leaves(store.value)
    loads = {x: load for x in leaves if isinstance(load := parts.loads.get(x), Load)}
    parts.make(c, leaves)
    for kept in (parts.loads[x] for x in leaves if x in parts.loads and x not in loads):
        kept.begin_to(len(kept.parts) - 1)
    shifted = [load for load in loads.values() if load.runs.is_shifted]

    def at(distance: Distance) -> tuple[()]:
        """All whole runs, in code for one distance: rows that lie otherwise than the first choose by themselves."""
        alike = shifted[0].runs.lies
        now = {x: load.at(distance if load.runs.lies == alike else None) for x, load in loads.items()}
        parts.loads.update(now)
        store.whole_runs(list(now.values()))
        return ()

    store.is_in_loop = parts.are_alike(leaves)
    for load in shifted if store.is_in_loop else ():
        if not load.first:
            load.begin_loop()
    runs = AT_A_TIME if store.is_in_loop else len(store.runs.places)
    elements = len(shifted) * runs * store.runs.run
    if shifted and elements <= MOST_COPIED:
        at_each(c, shifted[0].runs, at, is_exact=store.is_in_loop)
    else:
        store.whole_runs(list(loads.values()))
    if store.is_apart:
        store.at_ends(shifted)


class _Store:
    """A row that is stored: its whole runs, and its ends."""

    def __init__(self, c: Context, op: Operation) -> None:
        self.c, self.value, self.parts = c, op.operands[3], parts_of(c, op)
        self.runs, self.geometry = Runs(c, op, self.value), geometry_of(op, self.value)
        self.hints = hints_of(op) | self.runs.number() | {"part": len(c.rows)}
        c.rows[op] = len(c.rows)
        self.once = c.all_of(c.once(self.runs.layout, cluster=True))
        self.ends = self.parts.ends_of(c, self.runs, self.geometry)
        self.is_in_loop = False
        self.is_apart = self.parts.is_stored(op, self.value)
        """Whether what is stored at the ends is computed from the ends alone."""

    def whole_runs(self, loads: Sequence[Load]) -> None:
        """Store run by run what is computed of rows that are loaded run by run, and of others."""
        if not self.is_in_loop:
            self.some_runs(self.runs, loads)
            return
        c, leaves = self.c, self.parts.leaves(self.value)
        begin, end, there = self.runs.iterations(AT_A_TIME)
        self.whole_iterations(begin, end)
        others = c.plus(begin, self.runs.less(there, end))  # the first one, and those behind the whole ones
        with self.parts.in_loop(c, c.number(0), others, (), is_rest=True) as (number, _):
            number = c.plus(end, number)
            number = c.build.select(self.runs.compare(number, "<", there), number, c.number(0))
            with self.parts.later(self.runs, leaves, number, are_whole=False) as runs:
                self.some_runs(runs, self._loads(leaves))
            c.build.add("yield")

    def whole_iterations(self, begin: Value, end: Value) -> None:
        """Store, in a loop, runs that are whole. What an iteration loads of rows is on its way from the one before,
        part by part, in the registers that a part has left when it is stored."""
        c, leaves = self.c, self.parts.leaves(self.value)
        loads = self._loads(leaves)
        places = [(load, k) for load in range(len(loads)) for k in range(AT_A_TIME)]
        first = [load.first[k].values for load in loads for k in range(AT_A_TIME)]
        with self.parts.in_loop(c, begin, end, [x for values in first for x in values]) as (number, carried):
            left = iter(carried)
            coming = {place: tuple(islice(left, len(values))) for place, values in zip(places, first, strict=True)}
            following = c.plus(number, c.number(1))
            is_another = self.runs.compare(following, "<", end)
            after = [load.later(following, AT_A_TIME, are_whole=True) for load in loads]

            def stored(k: int) -> None:
                """Load what follows a part that has been stored; no access is to move over this."""
                for i, load in enumerate(after):
                    coming[i, k] = load.load(load.parts[k], Only(is_another, coming[i, k])).values
                c.build.add("barrier", attrs={"scope": "warp"})

            with self.parts.later(self.runs, leaves, number, are_whole=True) as runs:
                now = self._loads(leaves)
                for i, load in enumerate(now):
                    load.come([coming[i, k] for k in range(AT_A_TIME)])
                self.some_runs(runs, now, stored)
            c.build.add("yield", [x for place in places for x in coming[place]])

    def _loads(self, leaves: Sequence[SSAValue]) -> list[Load]:
        """The rows among what is stored that are loaded run by run."""
        return [load for x in leaves if isinstance(load := self.parts.loads.get(x), Load)]

    def some_runs(self, runs: Runs, loads: Sequence[Load], stored: Callable[[int], None] = lambda k: None) -> None:
        """Store some runs; `stored` is called with the number of each part that is."""
        c = self.c
        is_alone = len(loads) == 1 and loads[0].ahead == 1 and loads[0].runs.size >= WORD_BYTES
        is_skipped = self.is_apart and len(runs.places) > 1 and not runs.are_whole
        for k, part in enumerate(runs.parts()):
            for load in loads:
                load.begin_to(k + load.ahead + is_alone)
            any_there, body = self.parts.any_there(c, part, self.geometry, k) if is_skipped else None, Block()
            with c.inside(body) if any_there is not None else nullcontext():
                value = self.parts.of_run(c, self.value, k, part, self.is_apart)[self.value]
                if value.count == 1:
                    value = c.build.rename(value, [0] * len(part.order))
                others = [load.parts[k] for load in loads if load.runs.is_shifted and not runs.are_whole]
                masks = part.masks(runs.run // runs.vector, *(x.whole() for x in others), self.once)
                c.build.store("global", part.vectors(), value, runs.vector, masks, **self.hints)
                if not self.is_apart:
                    with c.inside(Block()) as taken:
                        _store_ends(c, part, value, self.once, self.hints)
                    part.if_warp(self.ends.mine, (), taken, Block())
            if any_there is not None:
                part.if_warp(any_there, (), body, Block())
            stored(k)

    def at_ends(self, shifted: Sequence[Load]) -> None:
        """Store what is in no run that is whole, one element a lane."""
        c, runs, ends = self.c, self.runs, self.ends
        with c.inside(Block()) as taken:
            start = ends.run_begin()
            whole = c.all_of([runs.whole(start), *(load.runs.whole(start) for load in shifted)])
            assert whole is not None
            mask = c.all_of([ends.there, c.negated(whole), self.once])
            stored = self.parts.of_ends(c, self.value, ends)
            c.build.store("global", runs.of_index(ends.index), stored, 1, mask, **self.hints)
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
