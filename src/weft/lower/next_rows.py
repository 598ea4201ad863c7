"""Long rows are asked for before the programs that they are for begin: they come to the L2 cache meanwhile.

    %x = tt.load %row + 0 ... 65535        if the program 16 later is there, the first thread of a block:
    ...                                =>    prefetch %row of that program, the block's part of its bytes
                                           %x = tt.load %row + 0 ... 65535
                                           ...

A multiprocessor has room for two or three rows of 100 KB in shared memory and registers. Its blocks load and compute in
step, so that memory has nothing to do for a part of the time, and is waited for in the rest. With the next rows in the
L2 cache it is always asked for something, and what a block loads comes back sooner.

How far ahead is a number of bytes (`Machine.rows_ahead`), more than comes from memory while that answers once, and less
than what the L2 cache holds beside all that goes through it meanwhile. A layer norm of 50,257 elements of bf16 by 4
warps takes 177 us on an H200 without this, 162 with rows 3 to 6 MB ahead, and 199 with the row 198 programs later,
which has left the cache when it is wanted. An RMS norm of 262,144 takes 142 us, and 137.

The machine code asks when most of the own row has come, since nothing waits for the answer. By then programs that began
together have all loaded theirs, those for which it asks among them. That costs nothing if the L2 cache still has them,
and so it is done only where all rows that programs have at a time are at most half of it: a layer norm of 65,536
elements of f32 by 16 warps, of which 34 MB are there at a time, would take 174 us instead of 148, because it would read
most rows from memory twice.

Rows of f32 that large blocks reduce more than once leave no register for a request that is made late: 65 are taken of
the 64 that two blocks of 512 threads have, or words lie in local memory (159 us instead of 145). There the first warp
asks before it loads, in a branch, so that nothing of it is left behind that.

Done for rows that are reduced and stored, in programs that begin in the order of their rows: whose address and length
follow from the program's number and from arguments alone. Not done for rows that are not stored: a cross entropy of
50,257 elements takes 86 us so, and 82 without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from xdsl.ir import Operation, SSAValue

from weft.analysis import Term, row_at
from weft.base import each_once
from weft.base.remarks import CacheHint
from weft.ir import is_tensor, shape_of
from weft.ir.lane import ELEMENT_BITS, Block, Builder, Value, is_elementwise
from weft.machines import Machine
from weft.ops.table import ELEMENTWISE

from .context import Context, elem_of
from .held import LARGE, OTHERS

LEAST = 128 << 10
"""Bytes of a row's tile from which on it is asked for."""
MOST_AT_ONCE = 0.5
"""Of the L2 cache: the most that all rows are which programs have at a time."""
GRANULE, MOST = 16, 1 << 20
"""Bytes that such a request begins at, and has, a multiple of; and that it has fewer than."""
WORD_BITS = 32
"""Of a register."""
SLT = 2
"""The predicate of a signed comparison."""


def ask_for_next(c: Context, op: Operation) -> None:
    """Ask for the row that a later program loads where this one does; its blocks each for their part."""
    block, blocks, threads = op.parent, c.program.blocks, c.program.warps * c.program.lanes
    assert block is not None
    if getattr(block.parent_op(), "name", "") != "tt.func" or not _reductions_of(op):
        return
    size = sum(_bytes_of(each) for each in block.ops if _reductions_of(each))
    running = c.program.at_a_time or blocks_running(c.machine, threads, size // (4 * threads * blocks))
    distance = programs_ahead(c.machine, size, running * c.machine.multiprocessors // blocks)
    if not distance:
        return
    with c.inside(Block()) as request:
        is_asked = _ask(c, op, distance)
        c.build.add("yield")
    if not is_asked:
        return
    if op.name == "tt.load" and threads >= LARGE and _reductions_of(op) > 1 and _are_words(op):
        first = c.is_zero(c.index("warp", c.program.warps - 1))
        c.build.add("if", [first], (), {"of_warp": True}, [request, _nothing()])
    else:
        c.build.block.ops += request.ops[:-1]
    why = f"memory is asked for {c.machine.rows_ahead} bytes of rows ahead of those that programs load"
    told = f"the row of the program {distance} later comes to the L2 cache"
    c.program.remarks.add(CacheHint(c.build.span, told, why))


def _ask(c: Context, op: Operation, distance: int) -> bool:
    """Ask for the row of the program that comes so much later, if there is one; whether it is known."""
    build, blocks = c.build, range((c.program.blocks - 1).bit_length())
    later = _Later(c, c.plus(build.add("program_id", (), [("i32", 1)], {"axis": 0}).result, c.number(distance)))
    row = _row_of(later, op)
    if row is None or not later.is_another:
        return False
    all_of = build.add("num_programs", (), [("i32", 1)], {"axis": 0}).result
    lanes, warps = (range((n - 1).bit_length()) for n in (c.program.lanes, c.program.warps))
    thread = build.linear([0], [1 << i for i in lanes], [c.program.lanes << i for i in warps])
    is_there = build.op("arith.cmpi", [later.program, all_of], "i1", predicate=SLT)
    part = build.op("arith.muli", [row.end, c.number(_bytes_of(op) // shape_of(op.results[0].type)[0])], "i32")
    part = build.op("arith.shrui", [part, c.number(len(blocks))], "i32")
    part = build.op("arith.andi", [part, c.number(-GRANULE)], "i32")
    if _bytes_of(op) >> len(blocks) >= MOST:
        part = build.op("arith.minsi", [part, c.number(MOST - GRANULE)], "i32")
    before = build.op("arith.muli", [build.linear([0], (), (), [1 << i for i in blocks]), part], "i32")
    begin = build.op("arith.addi", [row.begin, build.op("arith.extsi", [before], "i64")], "i64")
    begin = build.op("arith.andi", [begin, c.number(-GRANULE, "i64")], "i64")
    has_any = build.op("arith.cmpi", [c.number(0), part], "i1", predicate=SLT)
    active = c.all_of([is_there, c.is_zero(thread), has_any, *row.conditions])
    assert active is not None
    build.add("prefetch", [begin, part, active])
    return True


def _nothing() -> Block:
    """The other side of a branch."""
    block = Block()
    Builder(block).add("yield")
    return block


def blocks_running(machine: Machine, threads: int, words: int) -> int:
    """How many blocks of so many threads a multiprocessor runs at a time, each of which holds so many words of a row.

    >>> from weft.machines import machine_of
    >>> [blocks_running(machine_of("cuda:90"), threads, 64) for threads in (128, 256, 512, 1024)]
    [5, 2, 2, 1]
    """
    if threads >= LARGE:
        return max(1, machine.enough_threads // threads)
    return max(1, machine.blocks_at_a_time(threads, 0, min(machine.thread_registers, words + OTHERS)))


def programs_ahead(machine: Machine, size: int, running: int) -> int:
    """How many programs later rows are asked for, if so many programs with as many bytes of rows run at a time; 0 where
    they are not.

    >>> from weft.machines import machine_of
    >>> hopper = machine_of("cuda:90")
    >>> [programs_ahead(hopper, n << 10, 66) for n in (64, 128, 256, 512)]
    [0, 40, 20, 0]
    """
    at_once = size * running
    if not machine.rows_ahead or size < LEAST or at_once > machine.l2_size * MOST_AT_ONCE:
        return 0
    return max(1, machine.rows_ahead // size)


@dataclass
class _Row:
    """A row in memory: the address of its first element, how many elements are there, and whether any is."""

    begin: Value
    end: Value
    conditions: list[Value] = field(default_factory=list)


def _row_of(later: _Later, op: Operation) -> _Row | None:
    """The row that a load has in a later program; None where that does not follow from the program's number."""
    row = _loaded_row(later, op) if op.name == "weft.load_row" else _loaded_tile(later, op)
    assert op.parent is not None
    before = takewhile(lambda other: other is not op, op.parent.ops)
    conditions = [later.of(other.operands[0]) for other in before if other.name == "weft.end_unless"]
    there = [x for x in conditions if x is not None]
    return _Row(row.begin, row.end, there) if row is not None and len(there) == len(conditions) else None


def _loaded_row(later: _Later, op: Operation) -> _Row | None:
    """The same of a row that begins anywhere."""
    begin, end = later.of(op.operands[0]), later.of(op.operands[2])
    return _Row(begin, end) if begin is not None and end is not None else None


def _loaded_tile(later: _Later, op: Operation) -> _Row | None:
    """The same of a tile of consecutive addresses, as far as its mask is true."""
    row = row_at(op.operands[0], op.operands[1:2])
    if row is None or row.conditions:
        return None
    build, (count,) = later.c.build, shape_of(op.results[0].type)
    begin, last = later.of(row.base), later.c.number(count, "i64")
    first = later.sum_of(row.terms)
    for limit, added, more in row.ends:
        end, before = later.sum_of([limit, more]), later.sum_of(added)
        if end is None or before is None:
            return None
        last = build.op("arith.minsi", [last, build.op("arith.subi", [end, before], "i64")], "i64")
    if begin is None or first is None:
        return None
    size = later.c.number(_bytes_of(op) // count, "i64")
    begin = build.op("arith.addi", [begin, build.op("arith.muli", [first, size], "i64")], "i64")
    last = build.op("arith.maxsi", [last, later.c.number(0, "i64")], "i64")
    return _Row(begin, build.op("arith.trunci", [last], "i32"))


def _reductions_of(op: Operation) -> int:
    """How often a row is reduced that an operation loads and that is stored as well; 0 for other operations."""
    if op.name == "tt.load":
        is_row = is_tensor(op.results[0].type) and len(shape_of(op.results[0].type)) == 1
    else:
        is_row = op.name == "weft.load_row" and "aligned" in op.properties
    users, todo = dict[Operation, None](), list(op.results) if is_row else []
    for value in each_once(todo):
        for use in value.uses:
            users[use.operation] = None
            if use.operation.name in ELEMENTWISE:
                todo += use.operation.results
    names = [user.name for user in users]
    return names.count("tt.reduce") if {"tt.store", "weft.store_row"} & {*names} else 0


class _Later:
    """What values are in a later program."""

    def __init__(self, c: Context, program: Value) -> None:
        self.c, self.program = c, program
        self.made: dict[Value, Value | None] = {}
        self.is_another = False
        """Whether any has been another one than in this program."""

    def of(self, value: SSAValue) -> Value | None:
        """A value as that program has it, itself if it is the same; None if it does not follow from its number and
        arguments."""
        own = self.c[value]
        found = self._of(own)
        self.is_another |= found is not own
        return found

    def sum_of(self, terms: Sequence[Term]) -> Value | None:
        """The sum of integers, of 64 bits."""
        build, total = self.c.build, self.c.number(0, "i64")
        for term in terms:
            value = self.c.number(term, "i64") if isinstance(term, int) else self.of(term)
            if value is None:
                return None
            value = value if value.elem == "i64" else build.op("arith.extsi", [value], "i64")
            total = build.op("arith.addi", [total, value], "i64")
        return total

    def _of(self, value: Value) -> Value | None:
        if value not in self.made:
            self.made[value] = self._anew(value)
        return self.made[value]

    def _anew(self, value: Value) -> Value | None:
        op = value.op
        if op is None or op.name == "constant":
            return value
        if op.name == "program_id":
            return self.program if op.attrs["axis"] == 0 else value
        operands = [self._of(x) for x in op.operands]
        if any(x is None for x in operands) or not (is_elementwise(op.name) or op.name == "rename"):
            return None
        if all(x is y for x, y in zip(operands, op.operands, strict=True)):
            return value
        given = [x for x in operands if x is not None]
        return self.c.build.add(op.name, given, [(value.elem, value.count)], dict(op.attrs)).result


def _are_words(op: Operation) -> bool:
    """Whether the elements of a row have a register each."""
    return ELEMENT_BITS[elem_of(op.results[0].type)] == WORD_BITS


def _bytes_of(op: Operation) -> int:
    """Of the tile of a row."""
    tile = op.results[0].type
    assert is_tensor(tile)
    return shape_of(tile)[0] * ELEMENT_BITS[elem_of(tile)] // 8
