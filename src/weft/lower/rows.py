"""Rows that begin at any address: whole runs by vectors, the first and the last by elements (passes/align_rows.py).

    %whole = %first + 8 k  <u  %end - 7                           a predicate for each run
    %v     = load global %row + 2 (%first + 8 k), 8 elements, where whole
    %ends  = load global, 1 element a lane                        the first and the last runs of the row
    %v     = if %mine { select(%ragged, shuffle(%ends), %v) } else { %v }

where %first is the place of a lane's first run less the shift: negative only in the first run, whose first elements are
those of the end of the tile. `mine` holds in the warps that have a run which is not whole, two of them mostly: the
branch is a warp's own, and nothing in it waits for memory. So an element that is no element of the row is not read.

A run that is not aligned lies in two aligned vectors, or a part of each. Both are loaded where all that they have is of
the row, and their words are moved down by the distance, which is one number for the whole kernel:

    words 0 1 2 3 | 4 5 6 7, distance 6 bytes      by 2 words or none   by 1 or none: 1 2 3 4 5   by 2 bytes: 4 words

What comes after a load in memory's time, joining and moving, is written where its result is first used, so that the
loads of several rows are on their way together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value, is_tensor
from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, Value
from weft.layouts import f2

from .context import LOWERINGS, Context, elem_of, lowering, tile_shape
from .memory import VECTOR_BYTES, back, hints_of, runs_of

WORD_BYTES = 4
WORDS = "i32"
ON_THE_WAY = 128
"""Bytes of a row that a thread asks for at a time."""
MANY_PARTS, MOST_WARPS = 8, 16
"""Of blocks that are alone, but have registers for one part more to be on its way."""
MOST_BEFORE = 1000
"""Operations of the block before a store, if warps that have nothing of a part are to skip it: LLVM moves what only the
store wants into the branch, in time that grows with the square of it."""
AT_A_TIME = 1
"""Runs that are loaded, computed and stored at a time where a row is only wanted by what is stored."""
QUIET = ("arith.", "math.", "tt.", "weft.load_row")
LOUD = (
    *("tt.store", "tt.atomic", "tt.debug_barrier", "tt.call", "tt.print", "tt.assert", "weft.check", "tt.descriptor"),
    *("tt.elementwise_inline_asm", "tt.extern"),
)
"""What may and may not stand between a row and the store that it is pulled for."""


class _Runs:
    """The runs of a thread in a row, and where the row begins and ends."""

    def __init__(self, c: Context, op: Operation, tile: SSAValue) -> None:
        self.c, self.layout = c, c.layout(tile)
        self.run, self.tile = int_value(op.properties["run"]), tile_shape(tile)[0]
        self.size = max(8, ELEMENT_BITS[elem_of(tile.type)]) // 8
        self.order = runs_of(self.layout, self.run)
        """The layout's registers, run by run."""
        columns = self.layout.in_columns("register")
        self.places = [f2.multiply(columns, self.order[i]) for i in range(0, len(self.order), self.run)]
        """The first place of each run, in thread 0."""
        self.row, self.shift, self.end = c[op.operands[0]], c[op.operands[1]], c[op.operands[2]]
        lane = c.build.linear([0], self.layout.in_columns("lane"), self.layout.in_columns("warp"))
        self.first = self.less(lane, self.shift)
        """The number of the element at the first place of run 0: what is added to `places`."""
        self.needed = c.number(self.run)
        """How many elements must be there, from a run's first one on, for it to be whole."""
        self.before = c.number(0)
        """And how many before it."""
        self.distance = c.number(0)
        """By how many bytes runs lie behind aligned vectors."""

    def move_apart(self) -> None:
        """Runs lie in two vectors each, at a distance from the first that is found when the program runs."""
        c, length = self.c, self.run * self.size
        chunk = min(VECTOR_BYTES, length)
        shift = c.build.op("arith.muli", [self.shift, c.number(self.size)], "i32")
        distance = self.less(c.build.op("arith.trunci", [self.row], "i32"), shift)
        self.distance = c.build.op("arith.andi", [distance, c.number(chunk - 1)], "i32")
        self.before = c.build.op("arith.shrui", [self.distance, c.number(self.size.bit_length() - 1)], "i32")
        self.needed = self.less(c.number((length + chunk) // self.size), self.before)

    def parts(self) -> list[tuple[int, _Runs]]:
        """Some of the runs at a time, and which is their first."""
        found = []
        for k in range(0, len(self.places), AT_A_TIME):
            part = copy(self)
            part.places = self.places[k : k + AT_A_TIME]
            part.order = self.order[k * self.run : (k + AT_A_TIME) * self.run]
            found.append((k, part))
        return found

    def less(self, a: Value, b: Value) -> Value:
        return self.c.build.op("arith.subi", [a, b], "i32")

    def compare(self, a: Value, how: str, b: Value) -> Value:
        predicate = {"==": 0, "!=": 1, "<": 2, ">=": 5, "<u": 6}[how]
        return self.c.build.op("arith.cmpi", [a, b], "i1", predicate=predicate)

    def index(self) -> Value:
        """The number of the first element of each run; negative in the first run of all."""
        return self.c.plus(self.first, self.c.build.linear(self.places))

    def whole(self) -> Value:
        """Whether all that is loaded or stored with a run is there."""
        limit = self.c.plus(self.less(self.end, self.needed), self.c.number(1))
        limit = self.c.build.op("arith.maxsi", [self.less(limit, self.before), self.c.number(0)], "i32")
        return self.compare(self.less(self.index(), self.before), "<u", limit)

    def all_there(self, index: Value, size: int) -> Value:
        """Whether so many bytes from an element on are."""
        limit = self.less(self.end, self.c.number(size // self.size - 1))
        return self.compare(index, "<u", self.c.build.op("arith.maxsi", [limit, self.c.number(0)], "i32"))

    def lane_bits(self) -> list[int]:
        """What the bits of a lane's number are."""
        return [1 << i for i in range(self.c.program.lanes.bit_length() - 1)]

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
        """The place of the first run, beside those at the beginning, that is not whole."""
        behind = self.c.plus(self.less(self.c.plus(self.end, self.shift), self.needed), self.c.number(self.run))
        return self.c.build.op("arith.andi", [behind, self.c.number(-self.run)], "i32")

    def mine(self, spans: int) -> Value:
        """Whether a warp has the first or the last runs, `spans` of each; an assembler sees by the ballot that it is
        whole that goes one way."""
        c = self.c
        found = self.of_warp(c.number(0))
        for k in range(spans):
            place = c.plus(self.tail(), c.number(k * self.run))
            found = c.build.op("arith.ori", [found, self.of_warp(place)], "i1")
        lanes = c.build.add("ballot", [found], [("i32", 1)]).result
        return self.compare(lanes, "!=", c.number(0))

    def any_there(self) -> Value:
        """Whether any element of a warp's runs is."""
        c = self.c
        index = c.plus(
            self.less(c.build.linear([0], (), self.layout.in_columns("warp")), self.shift), c.number(min(self.places))
        )
        lanes = c.build.add("ballot", [self.compare(index, "<", self.end)], [("i32", 1)]).result
        return self.compare(lanes, "!=", c.number(0))

    def of_warp(self, place: Value) -> Value:
        """Whether a place is of this warp, as those behind the tile's end are of that which has its beginning."""
        columns = self.layout.in_columns("warp")
        own, bits = self.c.build.linear([0], (), columns), sum(dict.fromkeys(columns))
        return self.compare(self.c.build.op("arith.andi", [place, self.c.number(bits)], "i32"), "==", own)

    def if_mine(self, mine: Value, kinds: Sequence[tuple[str, int]], taken: Block, otherwise: Block) -> LaneOp:
        """A branch that a warp takes with its first or last runs."""
        return self.c.build.add("if", [mine], kinds, {"of_warp": True}, [taken, otherwise])

    def address(self, distance: Value | None = None) -> Value:
        """The address of run 0, less so many bytes."""
        start = self.of_index(self.first)
        if distance is None:
            return start
        return self.c.build.op("arith.subi", [start, self.c.build.op("arith.extsi", [distance], "i64")], "i64")

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

    def vectors(self) -> tuple[int, Value]:
        """(the elements of a vector, the addresses of those that runs are made of)"""
        vector = min(self.run, VECTOR_BYTES // self.size)
        return vector, self.at(self.address(), range(0, self.run * self.size, vector * self.size))

    def number(self) -> dict[str, int]:
        """For an access: which of the rows it is whose elements are each for one warp alone."""
        if self.layout.free_variable_masks()["warp"]:
            return {}
        return {"row": self.c.rows.setdefault((self.row, self.shift, self.size, self.layout), len(self.c.rows))}


class _Load:
    """A row that is loaded: when, and what is left to do with what has come."""

    def __init__(self, c: Context, op: Operation) -> None:
        self.c, self.hints = c, hints_of(op)
        self.elem, self.other = elem_of(op.results[0].type), c[op.operands[3]]
        self.runs = _Runs(c, op, op.results[0])
        self.moved: dict[int, Callable[[], Value]] = {}
        """What gives the elements of the runs from one on, once they are on their way."""
        self.is_aligned = "aligned" in op.properties
        if not self.is_aligned:
            self.runs.move_apart()
        self.mine = self.runs.mine(2)
        if self.is_aligned:
            self.hints |= self.runs.number()
        self.ends = _ends(c, self.runs, self.elem, self.other, self.hints)

        self.parts = self.runs.parts()
        self.begun = 0
        run_bytes = AT_A_TIME * self.runs.run * self.runs.size
        many = len(self.parts) >= MANY_PARTS and c.program.warps <= MOST_WARPS
        self.ahead = max(1, ON_THE_WAY // run_bytes) if self.is_aligned else 2 if many else 1
        """Parts that are loaded ahead: what is aligned is new, and far away; what is not is mostly the same for all."""

    def begin_to(self, last: int) -> None:
        """Load as many parts, where they are not on their way yet."""
        while self.begun <= min(last, len(self.parts) - 1):
            self.begin(*self.parts[self.begun])
            self.begun += 1

    def begin(self, k: int, part: _Runs) -> None:
        """Load some of the runs, from run k on."""
        if self.is_aligned:
            vector, address = part.vectors()
            masks = part.each(part.whole(), part.run // vector)
            loaded = self.c.build.load("global", address, self.elem, vector, masks, self.other, **self.hints)
            self.moved[k] = lambda: loaded
        else:
            self.moved[k] = _apart(self.c, part, self.elem, self.other, self.hints)

    def end(self, k: int, part: _Runs) -> Value:
        """Their elements: moved and, in the warps that have the row's ends, joined with those."""
        c, value = self.c, self.moved.pop(k)()
        taken, otherwise = Block(), Block()
        before = c.inside(taken)
        c.build.add("yield", [_joined(c, part, value, self.ends)])
        c.restore(before)
        before = c.inside(otherwise)
        c.build.add("yield", [value])
        c.restore(before)
        return part.if_mine(self.mine, [(self.elem, value.count)], taken, otherwise).result


@lowering("weft.load_row")
def _load(c: Context, op: Operation) -> None:
    result, load = op.results[0], _Load(c, op)
    _mark(c, op)
    if _is_for_store(c, op, load.is_aligned):
        c.pulled_rows[result] = load
        if load.is_aligned:
            load.begin_to(load.ahead - 1)
        return
    runs = load.runs
    load.begin(0, runs)

    def joined() -> Value:
        return c.build.rename(load.end(0, runs), back(runs.layout, runs.order))

    if all(use.operation.parent is op.parent for use in result.uses):
        c.waiting[result] = joined
    else:
        c[result] = joined()


def _mark(c: Context, op: Operation) -> None:
    """Note what is computed element by element for a store of a row alone, in the block of a row that is loaded."""
    block = op.parent
    assert block is not None
    if block in c.marked:
        return
    c.marked.add(block)
    loud = 0
    for one in block.ops:
        c.loud_before[one] = loud
        loud += not one.name.startswith(QUIET) or one.name.startswith(LOUD)
        todo = [one.operands[3]] if one.name == "weft.store_row" else []
        while todo:
            made = todo.pop().owner
            if isinstance(made, Operation) and made.parent is block and _is_pulled(made):
                c.pulled[made] = one
                todo += made.operands


def _is_pulled(op: Operation) -> bool:
    """Whether an operation, whose result has one use, can be done for some of the runs."""
    if not op.operands or not op.results[0].has_one_use() or not is_tensor(op.results[0].type):
        return False
    return op.name == "arith.select" or (op.name.startswith(("arith.", "math.")) and op.name not in LOWERINGS)


def _is_for_store(c: Context, op: Operation, is_aligned: bool) -> bool:
    """Whether a row is for a store alone, so that it can be loaded run by run when it is stored.

    Nothing may be written before, nor by this store, unless it is of the same elements.
    """
    use = op.results[0].get_user_of_unique_use()
    if use is None or use.parent is not op.parent:
        return False
    store = c.pulled.get(use)
    if store is None:
        store = use
        if use.name != "weft.store_row" or use.operands[3] is not op.results[0]:
            return False
    read, written = _argument(op.operands[0]), _argument(store.operands[0])
    if not is_aligned and (read is None or written is None or read is written):
        return False
    return c.loud_before[op] == c.loud_before[store]


def _argument(pointer: SSAValue) -> SSAValue | None:
    """The argument of the kernel that an address is computed from."""
    while isinstance(pointer.owner, Operation):
        if pointer.owner.name != "tt.addptr":
            return None
        pointer = pointer.owner.operands[0]
    function = pointer.owner.parent_op()
    return pointer if function is not None and function.name == "tt.func" else None


def _ends(c: Context, runs: _Runs, elem: str, other: Value, hints: dict[str, Any]) -> Value:
    """A warp's own elements at the first places, in half of its lanes, and of the last runs, in the others."""
    half = c.program.lanes // 2
    lane = c.build.linear([0], runs.lane_bits())
    first = runs.less(lane, runs.shift)
    first = c.build.select(runs.compare(first, "<", c.number(0)), c.plus(first, c.number(runs.tile)), first)
    last = runs.less(c.plus(runs.less(runs.tail(), runs.shift), lane), c.number(half))
    is_first = runs.compare(lane, "<", c.number(half))
    index = c.build.select(is_first, first, last)
    place = c.build.select(is_first, lane, c.plus(last, runs.shift))
    there = c.build.op("arith.andi", [runs.compare(index, "<u", runs.end), runs.of_warp(place)], "i1")
    return c.build.load("global", runs.of_index(index), elem, 1, there, other, **hints)


def _joined(c: Context, runs: _Runs, value: Value, ends: Value) -> Value:
    """What was loaded, with ragged runs made of what lanes have of the row's ends."""
    half = c.program.lanes // 2
    index = runs.index()
    place = c.plus(index, runs.shift)
    behind = c.plus(runs.less(place, runs.tail()), c.number(half))
    source = c.build.select(runs.compare(place, "<", c.number(half)), place, behind)
    lanes = c.plus(runs.each(source, runs.run), c.build.linear([e for _ in runs.places for e in range(runs.run)]))
    lanes = c.build.op("arith.andi", [lanes, c.number(c.program.lanes - 1)], "i32")
    found = c.build.shuffle(c.build.rename(ends, [0] * value.count), lanes)
    return c.build.select(runs.each(runs.ragged(), runs.run), found, value)


# -- runs that are not aligned -----------------------------------------------------------------------------------------


@dataclass
class _Words:
    """Words of each run, `each` of them."""

    c: Context
    value: Value
    each: int

    def some(self, start: int, end: int) -> Value:
        """Some words of each run."""
        table = [k + i for k in range(0, self.value.count, self.each) for i in range(start, end)]
        return self.c.build.rename(self.value, table)

    def followed_by(self, other: _Words) -> _Words:
        """The words of each run, and the others of it behind them."""
        both = self.c.build.add(
            "join", [self.value, other.value], [(WORDS, self.value.count + other.value.count)]
        ).result
        table = list[int]()
        for k in range(self.value.count // self.each):
            table += range(k * self.each, (k + 1) * self.each)
            table += range(self.value.count + k * other.each, self.value.count + (k + 1) * other.each)
        return _Words(self.c, self.c.build.rename(both, table), self.each + other.each)


def _apart(c: Context, runs: _Runs, elem: str, other: Value, hints: dict[str, Any]) -> Callable[[], Value]:
    """Load the vectors in which runs lie, at any distance from them; gives what moves the words of whole runs down.

    A lane loads as many vectors as a run has, and what is behind them the next lane has; behind the last lane's the
    first one has loaded it too.
    """
    length, distance = runs.run * runs.size, runs.distance
    chunk = min(VECTOR_BYTES, length)
    count, width = length // chunk, chunk // WORD_BYTES
    start, filled = runs.address(distance), _word(c, other, runs.size)
    begins = runs.less(runs.index(), runs.before)
    steps = [k * chunk // runs.size for k in range(count)]
    inside = runs.all_there(c.plus(runs.each(begins, count), c.build.linear(steps * len(runs.places))), chunk)
    places = runs.at(start, [k * chunk for k in range(count)])
    own = c.build.load("global", places, WORDS, width, inside, filled, **hints)
    lane, lanes = c.build.linear([0], runs.lane_bits()), c.program.lanes
    is_first = runs.compare(lane, "==", c.number(0))
    inside = runs.all_there(c.plus(begins, c.number(lanes * runs.run)), chunk)
    inside = c.build.op("arith.andi", [inside, is_first], "i1")
    behind = c.build.load("global", runs.at(start, [lanes * length]), WORDS, width, inside, filled, **hints)

    def moved() -> Value:
        mine = _Words(c, own, count * width)
        given = c.build.select(is_first, behind, mine.some(0, width))
        next_lane = c.build.op("arith.andi", [c.plus(lane, c.number(1)), c.number(lanes - 1)], "i32")
        words = mine.followed_by(_Words(c, c.build.shuffle(given, next_lane), width))
        step = chunk // WORD_BYTES // 2
        while step:
            bit = c.build.op("arith.andi", [distance, c.number(step * WORD_BYTES)], "i32")
            far, kept = runs.compare(bit, "!=", c.number(0)), words.each - step
            words = _Words(c, c.build.select(far, words.some(step, words.each), words.some(0, kept)), kept)
            step //= 2
        if runs.size == WORD_BYTES:
            return _as(c, words.some(0, length // WORD_BYTES), elem)
        rest = c.build.op("arith.andi", [distance, c.number(WORD_BYTES - 1)], "i32")
        selector = c.plus(c.build.op("arith.muli", [rest, c.number(0x1111)], "i32"), c.number(0x3210))
        pair, each = [words.some(0, words.each - 1), words.some(1, words.each)], WORD_BYTES // runs.size
        found = c.build.add("permute", [*pair, selector], [(WORDS, pair[0].count)], {"each": each}).result
        return c.build.add("unpack", [found], [(elem, found.count * each)]).result

    return moved


def _as(c: Context, value: Value, elem: str) -> Value:
    return value if elem == value.elem else c.build.op("arith.bitcast", [value], elem)


def _word(c: Context, other: Value, size: int) -> Value:
    """A word full of an element, of which any part that is moved is the same."""
    if size == WORD_BYTES:
        return _as(c, other, WORDS)
    several = c.build.rename(other, [0] * (WORD_BYTES // size))
    return c.build.add("pack", [several], [(WORDS, 1)]).result


# -- stores ------------------------------------------------------------------------------------------------------------


@lowering("weft.store_row")
def _store(c: Context, op: Operation) -> None:
    value = op.operands[3]
    c.has_stored = True
    runs = _Runs(c, op, value)
    hints = hints_of(op) | runs.number() | {"part": len(c.rows)}
    c.rows[op] = len(c.rows)
    once, mine = c.all_of(c.once(runs.layout, cluster=True)), runs.mine(1)
    loads = _leaves(c, value)
    is_skipped = len(c.build.block.ops) <= MOST_BEFORE
    for number, (k, part) in enumerate(runs.parts()):
        for load in loads:
            load.begin_to(number + load.ahead)
        body = Block()
        before = c.inside(body) if is_skipped else None
        stored = _pull(c, value, k, part)
        if stored.count == 1:
            stored = c.build.rename(stored, [0] * len(part.order))
        vector, address = part.vectors()
        masks = part.each(part.whole(), part.run // vector)
        c.build.store("global", address, stored, vector, c.all_of([masks, once]), **hints)
        taken = Block()
        outer = c.inside(taken)
        _store_ends(c, part, stored, once, hints)
        c.restore(outer)
        part.if_mine(mine, (), taken, Block())
        if before is not None:
            c.restore(before)
            part.if_mine(part.any_there(), (), body, Block())


def _leaves(c: Context, value: SSAValue) -> list[_Load]:
    """The rows that are pulled for a value; what else it is made of is made. (Chains may be longer than the stack.)"""
    found, todo = list[_Load](), [value]
    while todo:
        one = todo.pop()
        op = one.owner
        if one in c.pulled_rows:
            found.append(c.pulled_rows[one])
        elif isinstance(op, Operation) and op in c.pulled:
            todo += reversed(op.operands)
        else:
            _ = c[one]
    return found


def _pull(c: Context, value: SSAValue, k: int, part: _Runs) -> Value:
    """Some runs of a value, from run k on."""
    made, todo = list[Value](), [(value, False)]
    while todo:
        one, has_operands = todo.pop()
        op = one.owner
        if one in c.pulled_rows:
            load: _Load = c.pulled_rows[one]
            made.append(load.end(k, dict(load.parts)[k]))
        elif not isinstance(op, Operation) or op not in c.pulled:
            found = c[one]
            made.append(found if found.count == 1 else c.build.rename(found, part.order))
        elif has_operands:
            given = made[-len(op.operands) :]
            del made[-len(given) :]
            made.append(c.build.select(*given) if op.name == "arith.select" else c.elementwise(op, given=given))
        else:
            todo.append((one, True))
            todo += [(x, False) for x in reversed(op.operands)]
    return made.pop()


def _store_ends(c: Context, runs: _Runs, stored: Value, once: Value | None, hints: dict[str, Any]) -> None:
    """Store ragged runs element by element: what is there of them, and what the first one has of the tile's end."""
    ragged, index, each = c.all_of([runs.ragged(), once]), runs.index(), range(runs.run)
    assert ragged is not None
    rest = c.build.select(ragged, runs.less(runs.end, index), c.number(0))
    numbers = c.build.linear([e for _ in runs.places for e in each])
    address = runs.at(runs.address(), range(0, runs.run * runs.size, runs.size))
    there = runs.compare(numbers, "<", runs.each(rest, runs.run))
    if 0 not in runs.places:
        c.build.store("global", address, stored, 1, there, **hints)
        return
    first = runs.places.index(0)
    of_first = [first * runs.run + e for e in each]
    early = runs.less(c.number(0), c.build.rename(index, [first]))  # so many are of the tile's end
    both = c.build.add("join", [early, c.number(0)], [("i32", 2)]).result
    least = runs.each(c.build.rename(both, [int(k != first) for k in range(len(runs.places))]), runs.run)
    there = c.build.op("arith.andi", [there, runs.compare(numbers, ">=", least)], "i1")
    c.build.store("global", address, stored, 1, there, **hints)
    rest = runs.less(c.build.rename(rest, [first]), c.number(runs.tile))
    most = c.build.op("arith.minsi", [rest, early], "i32")
    end = c.build.op("arith.addi", [c.build.rename(address, of_first), c.number(runs.tile * runs.size, "i64")], "i64")
    wrapped = runs.compare(c.build.linear(list(each)), "<", most)
    c.build.store("global", end, c.build.rename(stored, of_first), 1, wrapped, **hints)
