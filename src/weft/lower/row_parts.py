"""Compute elementwise operations on rows run by run, at the reduction or store that uses them.

    %x = weft.load_row ...                          %x = weft.load_row ...
    %v = arith.extf %x                              %none = exp(extf(other) - %m) : 1 register
    %e = math.exp (arith.subf %v, %m)               for each run k:
    %s = tt.reduce(%e) add                becomes     %e.k, %s.k = if any element of the warp's runs k is there
    weft.store_row ..., (arith.divf %e, %s)             { exp(extf(%x.k) - %m), their sum } else { %none, 8 * %none }
                                                    %s = the sum of all %s.k, of all lanes and warps
                                                    for each run k: if any is there { store divf(%e.k, %s) }

The size of a tile is the next power of two, so up to half of it lies beyond its row: of a row of 4,097 elements in a
tile of 8,192, a thread has elements in two of its four runs. If all of a warp's runs k lie beyond the row, their
results are those for `other`, which are computed once. On an H100 a softmax of such rows issued 542 instructions per
thread, which took 0.85 of the time that memory takes.

A mask that says which elements belong to the row (their number is compared with the row's end) is true in runs that lie
within the row. A warp that has only such runs takes a copy of the computation that has no masks:

    %v = arith.select %mask, %d, 0    becomes    if all of the warp's runs k are there { %d.k }
                                                 else if any is { select(%number.k < %end, %d.k, 0) } else { 0 }

An expensive value with several users (`%e`) is kept by the first of them, a reduction. Conversions (`%v`) are repeated,
because a row of bf16 takes half the registers of its floats. The ends of rows (row_runs.py) are computed separately,
by the same operations.

This is done for the operations of a block of IR all of whose tiles come from loads of one row's elements, and all of
whose users are of this kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects import arith
from xdsl.ir import Block as XBlock, Operation, SSAValue

from weft.base import each_once
from weft.ir import int_value, is_tensor, shape_of, splat_value
from weft.ir.gpu import layout_of
from weft.ir.lane import ELEMENT_BITS, Block, Value
from weft.ops.table import ELEMENTWISE, ROWS

from .context import Context, elem_of
from .kept_rows import kept_parts
from .row_runs import Ends, Runs

CHEAP = frozenset(name for name, row in ROWS.items() if row.arity == 1 and row.kind.how != "same" and row.cost == 1)
"""Casts are done again rather than kept."""
SLT = 2
"""The predicate of a signed comparison."""
LARGE, MANY = 512, 64
"""Threads of a block and registers of a tile from which on a row that is reduced stays one value, unless it waits in
shared memory: what such blocks hold is decided when all of the program is written (held.py)."""
VERY_MANY = 128
"""Registers of a tile from which on the row of a small block alone waits in shared memory, too: rows of 32,001 elements
of bf16 by 8 warps, which would take all registers of a thread. (Those of 4,097 by 4 warps take 255 us on an H200 from
registers, and 296 so.)"""
AT_A_TIME, FEW = 2, 4
"""Runs that an iteration of a loop over runs has, and up to how many are done without a loop."""
QUIET = ("arith.", "math.", "tt.", "weft.load_row")
LOUD = (
    *("tt.store", "tt.atomic", "tt.debug_barrier", "tt.call", "tt.print", "tt.assert", "weft.check", "tt.descriptor"),
    *("tt.elementwise_inline_asm", "tt.extern"),
)
"""What may and may not stand between a row and the first that wants it, if it comes later than it is loaded."""
MOST_AGAIN = 8
"""Of a row that waits in shared memory: what is computed for several, which they all do again, costs so much at most.
An exponential costs 20: a softmax of bf16 that computes it twice takes 216 us where one that holds it takes 193."""
Geometry = tuple[object, ...]
"""What says which elements of a row a thread has, and which are there: shift, end, run and layout."""


@dataclass(frozen=True)
class _Chain:
    """What a tile is computed from: the elements of which rows, and whether also from their numbers."""

    rows: frozenset[Geometry]
    is_numbered: bool = False
    is_dear: bool = False
    is_masked: bool = False
    """Whether from the mask that says which elements are there."""
    cost: int = 0
    """The cost of all operations together."""


class Loading(Protocol):
    """A row that is loaded run by run, ahead of who wants them (`rows.Load`)."""

    runs: Runs
    parts: list[Runs]

    def begin_to(self, last: int) -> None:
        """Load as many parts, where they are not on their way yet."""

    def arrive(self) -> None:
        """Wait for all of it, if it does not come part by part."""

    def end(self, k: int) -> Value:
        """The elements of a part, as far as its runs are whole."""

    @property
    def is_untouched(self) -> bool:
        """Whether all of it lies in memory, nothing of it in registers."""

    def later(self, number: Value, count: int, are_whole: bool) -> Loading:
        """The parts of an iteration of a loop over so many parts at a time."""


class Parts:
    """The operations of a block that are done run by run, and what has been done."""

    def __init__(self, c: Context, block: XBlock) -> None:
        self.chains: dict[SSAValue, _Chain] = {}
        """For each tile that is computed element by element of rows, or numbers of elements, what it is made of."""
        self.deferred: set[Operation] = set()
        self.sinks: dict[SSAValue, list[Operation]] = {}
        """The stores and reductions that a deferred value, or a row, is for; in order."""
        self.loads: dict[SSAValue, Loading] = {}
        """Rows that are loaded where they are stored, and those that wait in shared memory."""
        self.waiting: dict[SSAValue, int] = {}
        """Rows that wait in shared memory (kept_rows.py), and how many of their parts."""
        self.ends: dict[SSAValue, Value] = {}
        """The first and the last elements of each loaded row."""
        self.others: dict[SSAValue, Value] = {}
        """And what is there instead of those beyond them."""
        self.kept: dict[SSAValue, list[Value]] = {}
        """What reductions have computed for others, run by run."""
        self.rows: dict[Geometry, Operation] = {}
        """A load of each geometry."""
        self.masks: set[SSAValue] = set()
        """Tiles that say which elements of such a row are there."""
        self._beyond: dict[int, dict[SSAValue, Value]] = {}
        """For each block of the lane program, what has been computed there of nothing: for all reductions once."""
        self._evaluated: dict[tuple[object, ...], Ends | Value] = {}
        """The ends of rows, and conditions, which are the same for all that have one geometry."""
        order = {op: i for i, op in enumerate(block.ops)}
        for op in order:
            if op.name == "weft.load_row":
                self.rows.setdefault(geometry_of(op, op.results[0]), op)
        for op in order:
            self._note(op)
        self.are_stored = False
        """Whether some of the rows that are reduced are stored as well."""
        self.may_wait = _is_of_function(block)
        """Whether rows of large blocks are to wait in shared memory."""
        for op in reversed(order):
            self._defer(op, order)
        if self.may_wait and not self._find_room(c, order):
            self.may_wait = False
            self.deferred.clear()
            self.sinks.clear()
            for op in reversed(order):
                self._defer(op, order)

    # -- which ---------------------------------------------------------------------------------------------------------

    def _find_room(self, c: Context, order: dict[Operation, int]) -> bool:
        """Find room in shared memory for rows that are reduced more than once; whether no row of a large block is left
        that is reduced run by run and has none.

        In a cluster it is done for small blocks, too: of those that wait for the results of others, more fit then.
        """
        loads = [op for op in order if op.name == "weft.load_row"]
        sinks = {op: [x.name for x in self.sinks.get(op.results[0], ())] for op in loads}
        self.are_stored = any("weft.store_row" in names for names in sinks.values() if "tt.reduce" in names)
        rows = [op for op in loads if _is_long(op.results[0], c.program.blocks, self.are_stored)]
        reductions = {op: sinks[op].count("tt.reduce") for op in rows}
        reduced = [op for op, count in reductions.items() if count]
        is_worth_it = all(count > 1 and _may_wait(op) for op, count in reductions.items() if count)
        if not is_worth_it or any(op.results[0] not in self.sinks for op in rows):
            return False
        if not all(is_quiet_until(op, self.sinks[op.results[0]][0]) for op in reduced):
            return False
        if any(self.chains[x].cost > MOST_AGAIN and self._is_again(x, c.program.blocks) for x in self.sinks):
            return False
        kept = kept_parts(c, [_runs_of(op) for op in reduced], self.are_stored)
        if kept is not None:
            blocks, each = kept
            c.program.at_a_time = blocks if reduced else c.program.at_a_time
            self.waiting = {op.results[0]: parts for op, parts in zip(reduced, each, strict=True)}
        return kept is not None

    def _is_again(self, value: SSAValue, blocks: int) -> bool:
        """Whether something that is computed of a long row is wanted by several."""
        is_long = value.owner in self.deferred and _is_long(value, blocks, self.are_stored)
        return is_long and len(self.sinks[value]) > 1

    def _note(self, op: Operation) -> None:
        """Note what a tile is made of."""
        if op.name == "weft.load_row":
            self.chains[op.results[0]] = _Chain(frozenset([geometry_of(op, op.results[0])]))
        elif (geometry := self._masked_by(op)) is not None:
            self.chains[op.results[0]] = _Chain(frozenset([geometry]), is_masked=True)
            self.masks.add(op.results[0])
        elif op.name == "tt.make_range":
            self.chains[op.results[0]] = _Chain(frozenset(), is_numbered=True)
        elif _is_elementwise(op):
            tiles = [x for x in op.operands if not _is_same_everywhere(x)]
            if tiles and all(x in self.chains for x in tiles):
                parts = [self.chains[x] for x in tiles]
                rows = frozenset[Geometry]().union(*(p.rows for p in parts))
                is_dear = op.name not in CHEAP or any(p.is_dear for p in parts)
                numbered, masked = (any(getattr(p, x) for p in parts) for x in ("is_numbered", "is_masked"))
                cost = ROWS[op.name].cost + sum(p.cost for p in parts)
                self.chains[op.results[0]] = _Chain(rows, numbered, is_dear, masked, cost)

    def _masked_by(self, op: Operation) -> Geometry | None:
        """The row that a comparison says of which elements are there, if it says no more."""
        if op.name != "arith.cmpi" or int_value(op.properties["predicate"]) != SLT or not is_tensor(op.results[0].type):
            return None
        shift, limit = _shift_of(op.operands[0]), op.operands[1].owner
        if shift is None or not isinstance(limit, Operation) or limit.name != "tt.splat":
            return None
        key = (shift, _number(limit.operands[0]), layout_of(op.results[0].type))
        return next((row for row in self.rows if (row[0], row[1], row[3]) == key), None)

    def _defer(self, op: Operation, order: dict[Operation, int]) -> None:
        """Note who an operation's result is for, and whether it can be done there."""
        result = op.results[0] if len(op.results) == 1 else None
        if result is None or result not in self.chains or len(self.chains[result].rows) != 1:
            return
        deferred = set[Operation]()
        for use in result.uses:
            user = use.operation
            if user in self.deferred:
                deferred.update(self.sinks[user.results[0]])
            elif user in order and (self.is_stored(user, result) or self._is_reduced(user, result)):
                deferred.add(user)
            else:
                return
        sinks = sorted(deferred, key=order.__getitem__)
        if op.name != "weft.load_row":
            if not sinks or (self.chains[result].is_dear and len(sinks) > 1 and sinks[0].name != "tt.reduce"):
                return
            self.deferred.add(op)
        self.sinks[result] = sinks

    def is_stored(self, op: Operation, value: SSAValue) -> bool:
        """Whether a store of a row can compute what it stores from the ends of the same row."""
        if op.name != "weft.store_row" or op.operands[3] is not value or value not in self.chains:
            return False
        return self.chains[value].rows == {geometry_of(op, value)}

    def _is_reduced(self, op: Operation, value: SSAValue) -> bool:
        """Whether a reduction can go run by run."""
        if op.name != "tt.reduce" or len(op.operands) != 1 or self.chains[value].is_numbered:
            return False
        layout, (row,) = layout_of(value.type), self.chains[value].rows
        if _is_large(value) and not self.may_wait:  # one value
            return False
        return not layout.free_variable_masks()["register"] and layout.in_dims["register"] > run_of(row)

    # -- evaluation ----------------------------------------------------------------------------------------------------

    def are_alike(self, leaves: Sequence[SSAValue]) -> bool:
        """Whether code for some runs is code for all of them: what is computed from lies in memory, or is the same
        everywhere."""
        if not self.are_stored:
            return False
        loads = [self.loads[x] for x in leaves if x in self.loads]
        others = [x for x in leaves if x not in self.loads]
        if not loads or not all(x in self.masks or _is_same_everywhere(x) for x in others):
            return False
        runs = loads[0].runs
        return len(runs.places) > FEW and all(load.is_untouched for load in loads)

    @contextmanager
    def in_loop(
        self, c: Context, begin: Value, end: Value, initial: Sequence[Value], is_rest: bool = False
    ) -> Iterator[tuple[Value, Sequence[Value]]]:
        """A loop over runs, so many at a time; gives the number of an iteration, and what it carries."""
        number, *carried = Value("i32", 1), *(Value(x.elem, x.count) for x in initial)
        block = Block((number, *carried))
        with c.inside(block):
            yield number, carried
        kinds, attrs = [(x.elem, x.count) for x in initial], {"rest": True} if is_rest else {}
        c.build.add("for", [begin, end, c.number(1), *initial], kinds, attrs, [block])

    @contextmanager
    def later(self, runs: Runs, leaves: Sequence[SSAValue], number: Value, are_whole: bool) -> Iterator[Runs]:
        """The runs of an iteration, and rows as it loads them."""
        before = dict(self.loads)
        self.loads.update({x: before[x].later(number, AT_A_TIME, are_whole) for x in leaves if x in before})
        yield runs.later(number, AT_A_TIME, are_whole)
        self.loads = before

    @property
    def waits_whole(self) -> bool:
        """Whether all of each row that is reduced waits in shared memory, so that loops go over its runs."""
        waiting = [(self.loads[x], parts) for x, parts in self.waiting.items() if x in self.loads]
        return self.are_stored and bool(waiting) and all(FEW < len(row.parts) == parts for row, parts in waiting)

    def make(self, c: Context, leaves: Sequence[SSAValue]) -> None:
        """Make what is computed from before the branches that it is used in."""
        for leaf in leaves:
            if leaf in self.loads:
                self.loads[leaf].arrive()
            elif leaf not in self.kept and leaf not in self.masks:
                _ = c[leaf]

    def leaves(self, value: SSAValue) -> list[SSAValue]:
        """What deferred operations compute a value from."""
        leaves, todo = list[SSAValue](), [value]
        for source in each_once(todo):
            if source in self.kept or source in self.masks or source.owner not in self.deferred:
                leaves.append(source)
            else:
                todo += reversed(source.owner.operands)  # type: ignore[union-attr]
        return leaves

    def of_run(self, c: Context, value: SSAValue, k: int, part: Runs, is_whole: bool) -> dict[SSAValue, Value]:
        """A value in the runs number k, and what it is computed from; `is_whole` if nothing else than whole runs
        matters."""

        def leaf(source: SSAValue) -> Value | None:
            if source in self.kept:
                return self.kept[source][k]
            if source in self.loads:
                return self.loads[source].end(k)
            if source in self.masks:
                return c.number(1, "i1") if is_whole else part.there()
            if source.owner in self.deferred:
                return None
            fragment = c[source]
            return fragment if fragment.count == 1 else c.build.rename(fragment, part.order)

        return _evaluated(c, value, leaf)

    def of_ends(self, c: Context, value: SSAValue, ends: Ends) -> Value:
        """A value at the ends of a row."""

        def leaf(source: SSAValue) -> Value | None:
            if source in self.ends:
                return self.ends[source]
            if source in self.masks:
                return c.number(1, "i1")  # nobody looks at what is not there
            if isinstance(source.owner, Operation) and source.owner.name == "tt.make_range":
                return ends.place
            return c[source] if _is_same_everywhere(source) else None

        return _evaluated(c, value, leaf)[value]

    def of_nothing(self, c: Context, value: SSAValue) -> dict[SSAValue, Value]:
        """A value beyond the end of the row, and all that has been computed there."""
        kept = self._beyond.setdefault(id(c.build.block), {})

        def leaf(source: SSAValue) -> Value | None:
            if source in kept:
                return kept[source]
            if source in self.masks:
                return c.number(0, "i1")
            return self.others[source] if source in self.others else c[source] if _is_same_everywhere(source) else None

        kept.update(_evaluated(c, value, leaf))
        return kept

    # -- what is common to all of one geometry -------------------------------------------------------------------------

    def ends_of(self, c: Context, runs: Runs, geometry: Geometry) -> Ends:
        """The ends of a row, one a lane."""
        key = (id(c.build.block), geometry)
        if key not in self._evaluated:
            self._evaluated[key] = Ends(runs)
        ends = self._evaluated[key]
        assert isinstance(ends, Ends)
        return ends

    def any_there(self, c: Context, part: Runs, geometry: Geometry, k: int) -> Value:
        """Whether a warp has any element of its runs number k."""
        return self._once(c, (geometry, k), part.any_there)

    def all_there(self, c: Context, part: Runs, geometry: Geometry, k: int) -> Value:
        """Whether a warp's runs number k are whole."""
        return self._once(c, (geometry, k, "all"), part.all_of_warp)

    def ends_in(self, c: Context, part: Runs, geometry: Geometry, k: int) -> Value:
        """Whether a warp's runs number k are there, but not all whole."""
        all_there = self.all_there(c, part, geometry, k)
        both = c.all_of([self.any_there(c, part, geometry, k), c.negated(all_there)])
        assert both is not None
        return both

    def _once(self, c: Context, what: tuple[object, ...], compute: Callable[[], Value]) -> Value:
        """A condition, which a block of the lane program computes once."""
        key = (id(c.build.block), *what)
        if key not in self._evaluated:
            self._evaluated[key] = compute()
        condition = self._evaluated[key]
        assert isinstance(condition, Value)
        return condition


def parts_of(c: Context, op: Operation) -> Parts:
    """What is known of the block that an operation is in."""
    block = op.parent
    assert block is not None
    parts: Parts | None = c.parts.get(block)
    if parts is None:
        c.parts[block] = parts = Parts(c, block)
        c.deferred |= parts.deferred
    return parts


def _is_of_function(block: XBlock) -> bool:
    """Whether a block is a function's own, so that it is run once."""
    parent = block.parent_op()
    return parent is not None and parent.name == "tt.func"


def _is_large(row: SSAValue) -> bool:
    """Whether a tile is of a large block, each of whose threads has many elements of it."""
    layout = layout_of(row.type)
    return layout.in_dims["lane"] * layout.in_dims["warp"] >= LARGE and layout.in_dims["register"] >= MANY


def _is_long(row: SSAValue, blocks: int, is_stored: bool) -> bool:
    """Whether a thread has many elements of a row, and its block is large or one of several; or very many."""
    layout = layout_of(row.type)
    registers, is_large = layout.in_dims["register"], layout.in_dims["lane"] * layout.in_dims["warp"] >= LARGE
    words = registers * ELEMENT_BITS[elem_of(row.type)] // 32
    if blocks > 1 or is_large:
        return registers >= MANY or (is_stored and words >= MANY // 2)
    return is_stored and registers >= VERY_MANY


def is_quiet_until(op: Operation, last: Operation) -> bool:
    """Whether nothing is written between a row's load and the first that wants it."""
    between = op.next_op
    while between is not None and between is not last:
        if not between.name.startswith(QUIET) or between.name.startswith(LOUD):
            return False
        between = between.next_op
    return True


def _runs_of(op: Operation) -> tuple[int, int]:
    """How many runs a thread has in a row, and their bytes."""
    (result,), run = op.results, int_value(op.properties["run"])
    return layout_of(result.type).in_dims["register"] // run, run * ELEMENT_BITS[elem_of(result.type)] // 8


def _may_wait(op: Operation) -> bool:
    """Whether a row can be copied to shared memory, and read from there as words."""
    return "aligned" in op.properties and ELEMENT_BITS[elem_of(op.results[0].type)] in (16, 32)


def geometry_of(op: Operation, tile: SSAValue) -> Geometry:
    """Which elements a load or store of a row has."""
    shift, end = map(_number, op.operands[1:3])
    return shift, end, int_value(op.properties["run"]), layout_of(tile.type)


def _number(value: SSAValue) -> object:
    """A constant as its number, which it is wherever it stands; other values as they are."""
    return int_value(value.owner.properties["value"]) if isinstance(value.owner, arith.ConstantOp) else value


def _shift_of(numbers: SSAValue) -> object:
    """By how much the numbers of elements at the places of a tile are rotated, as `align_rows` writes it; None for
    other tiles."""
    op = numbers.owner
    if not isinstance(op, Operation):
        return None
    if op.name == "tt.make_range":
        return None if int_value(op.properties["start"]) else 0
    rotated = op.operands[0].owner if op.name == "arith.andi" else None
    if not isinstance(rotated, Operation) or rotated.name != "arith.subi":
        return None
    size, shift = _splat(op.operands[1]), rotated.operands[1].owner
    if size != shape_of(numbers.type)[0] - 1 or not isinstance(shift, Operation) or shift.name != "tt.splat":
        return None
    return None if _shift_of(rotated.operands[0]) != 0 else _number(shift.operands[0])


def _splat(value: SSAValue) -> object:
    """The number that a constant tile repeats; None for other tiles."""
    op = value.owner
    return splat_value(op.properties["value"]) if isinstance(op, arith.ConstantOp) else None


def run_of(geometry: Geometry) -> int:
    """The run of a geometry."""
    run = geometry[2]
    assert isinstance(run, int)
    return run


def _is_elementwise(op: Operation) -> bool:
    """Whether an operation computes each element of a tile of those at the same place, and is one of a lane program."""
    named = op.name in ELEMENTWISE and (not ROWS[op.name].lane or op.name == "arith.select")
    return named and len(op.results) == 1 and is_tensor(op.results[0].type)


def _is_same_everywhere(value: SSAValue) -> bool:
    """Whether a value is a scalar, or a tile of one."""
    op = value.owner
    return not is_tensor(value.type) or (isinstance(op, Operation) and op.name in ("tt.splat", "arith.constant"))


def _evaluated(c: Context, value: SSAValue, leaf: Callable[[SSAValue], Value | None]) -> dict[SSAValue, Value]:
    """A value, and all that it is computed from, down to leaves. (Chains may be longer than the stack.)"""
    values, todo = dict[SSAValue, Value](), [value]
    while todo:
        source = todo[-1]
        fragment = values.get(source) or leaf(source)
        if fragment is None:
            op = source.owner
            assert isinstance(op, Operation)
            missing = [x for x in op.operands if x not in values]
            if missing:
                todo += reversed(missing)
                continue
            operands = [values[x] for x in op.operands]
            fragment = _chosen(op, operands) or c.of_given(op, operands)
        values[source] = fragment
        todo.pop()
    return values


def _chosen(op: Operation, operands: Sequence[Value]) -> Value | None:
    """What an operation chooses, where it is known."""
    condition = operands[0].op if op.name == "arith.select" else None
    if condition is None or condition.name != "constant":
        return None
    return operands[1 if condition.attrs["value"] else 2]
