"""Prefetch the long rows of later programs into the L2 cache.

    %x = tt.load %row + 0 ... 65535        if there is a program 16 later, the first thread of a block does:
    ...                                =>    prefetch the block's part of that program's row
                                           %x = tt.load %row + 0 ... 65535
                                           ...

A multiprocessor has room for two or three rows of 100 KB in shared memory and registers. Its blocks load and compute in
step, so memory is idle for a part of the time, and the blocks wait for it during the rest. With prefetches memory is
always busy, and what a block loads arrives sooner.

How far ahead is a number of bytes (`Machine.rows_ahead`): more than memory delivers within its latency, and less than
the L2 cache keeps beside everything else that goes through it meanwhile. A layer norm of 50,257 elements of bf16 by 4
warps takes 177 us on an H200 without prefetches, 162 with rows 3 to 6 MB ahead, and 199 with the row 198 programs
later, which has been evicted before it is loaded. An RMS norm of 262,144 takes 142 us without, and 137 with them.

Nothing waits for a prefetch, so ptxas moves it behind most loads of the program's own row. By then, programs that began
together have all loaded their rows, and the prefetched row may be one of these. That costs nothing while it is still in
the L2 cache. So rows are prefetched only if the rows of all programs that run at a time take at most half of that
cache. For a layer norm of 65,536 elements of f32 by 16 warps they take 34 MB: it would take 174 us instead of 148,
because most rows would be read from memory twice.

Rows of f32 that large blocks reduce more than once leave no register for a late prefetch. Two blocks of 512 threads
have 64 registers for each thread, and the prefetch is a 65th or makes words spill (159 us instead of 145). There the
first warp prefetches before it loads, in a branch, so that nothing of the prefetch is left for later.

Done for rows that are reduced and stored, if the programs run in the order of their rows: the address and length of a
row follow from the number of the program and from arguments alone. Not done for rows that are not stored: a cross
entropy of 50,257 elements takes 86 us with prefetches, and 82 without.
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
"""Bytes of the smallest tile of a row for which later rows are prefetched."""
MOST_AT_ONCE = 0.5
"""The part of the L2 cache that the rows of all programs that run at a time may take."""
GRANULE, MOST = 16, 1 << 20
"""A prefetch begins at a multiple of so many bytes and has a multiple of them; and it has fewer than the second."""
WORD_BITS = 32
"""Bits of a register."""
SLT = 2
"""The predicate of a signed comparison."""


def ask_for_next(c: Context, op: Operation) -> None:
    """Prefetch the row that a later program loads by this operation; each block of a cluster prefetches its part."""
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
    why = f"rows are fetched {c.machine.rows_ahead} bytes ahead of the programs that load them"
    told = f"the row of the program {distance} later is prefetched into the L2 cache"
    c.program.remarks.add(CacheHint(c.build.span, told, why))


def _ask(c: Context, op: Operation, distance: int) -> bool:
    """Prefetch the row of the program `distance` later, if that program exists; False if its row cannot be computed."""
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
    """An empty `else`."""
    block = Block()
    Builder(block).add("yield")
    return block


def blocks_running(machine: Machine, threads: int, words: int) -> int:
    """How many blocks of `threads` threads a multiprocessor runs at a time, if each thread holds `words` of a row.

    >>> from weft.machines import machine_of
    >>> [blocks_running(machine_of("cuda:90"), threads, 64) for threads in (128, 256, 512, 1024)]
    [5, 2, 2, 1]
    """
    if threads >= LARGE:
        return max(1, machine.enough_threads // threads)
    return max(1, machine.blocks_at_a_time(threads, 0, min(machine.thread_registers, words + OTHERS)))


def programs_ahead(machine: Machine, size: int, running: int) -> int:
    """How many programs ahead rows of `size` bytes are prefetched, if `running` programs run at a time; 0 if they are
    not prefetched.

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
    """A row in memory: the address of its first element, its length, and the conditions under which it exists."""

    begin: Value
    end: Value
    conditions: list[Value] = field(default_factory=list)


def _row_of(later: _Later, op: Operation) -> _Row | None:
    """The row that an operation loads in a later program; None if it does not follow from that program's number."""
    row = _loaded_row(later, op) if op.name == "weft.load_row" else _loaded_tile(later, op)
    assert op.parent is not None
    before = takewhile(lambda other: other is not op, op.parent.ops)
    conditions = [later.of(other.operands[0]) for other in before if other.name == "weft.end_unless"]
    there = [x for x in conditions if x is not None]
    return _Row(row.begin, row.end, there) if row is not None and len(there) == len(conditions) else None


def _loaded_row(later: _Later, op: Operation) -> _Row | None:
    """The same for a row that begins at any address."""
    begin, end = later.of(op.operands[0]), later.of(op.operands[2])
    return _Row(begin, end) if begin is not None and end is not None else None


def _loaded_tile(later: _Later, op: Operation) -> _Row | None:
    """The same for a tile of consecutive addresses, as far as its mask is true."""
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
    """How often the row that an operation loads is reduced; 0 if it is not stored, or if the operation loads no row."""
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
        """Whether any value differed from that of this program."""

    def of(self, value: SSAValue) -> Value | None:
        """The value in that program, or `value` itself if it is the same; None if it does not follow from the number of
        the program and from arguments."""
        own = self.c[value]
        found = self._of(own)
        self.is_another |= found is not own
        return found

    def sum_of(self, terms: Sequence[Term]) -> Value | None:
        """The sum of integers in 64 bits."""
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
    """Whether each element of a row takes a whole register."""
    return ELEMENT_BITS[elem_of(op.results[0].type)] == WORD_BITS


def _bytes_of(op: Operation) -> int:
    """The bytes of a row's tile."""
    tile = op.results[0].type
    assert is_tensor(tile)
    return shape_of(tile)[0] * ELEMENT_BITS[elem_of(tile)] // 8
