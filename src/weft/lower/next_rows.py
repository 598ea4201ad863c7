"""Long rows are asked for before the programs that they are for begin: they come to the L2 cache meanwhile.

    copy_async %own + 8192 k, %row + 8192 k           if the program 64 later is there, the first thread of a block:
    ...                                          =>     prefetch %row of that program, its bytes
                                                      copy_async %own + 8192 k, %row + 8192 k
                                                      ...

A multiprocessor has room for two or three rows of 100 KB in shared memory. Its blocks load and compute in step, so that
memory has nothing to do for a part of the time, and is waited for in the rest. With the next rows in the L2 cache it is
always asked for something, and what a block loads comes back sooner.

How far ahead is a number of bytes (`Machine.rows_ahead`), more than comes from memory while that answers once, and less
than what the L2 cache holds beside all that goes through it meanwhile. A layer norm of 50,257 elements of bf16 by 4
warps takes 177 us on an H200 without this, 165 with the row 100 programs later (10 MB), and 199 with the row 198
programs later, which has left the cache when it is wanted.

Done for rows that wait in shared memory for two reductions and for the store (kept_rows.py), in programs that begin in
the order of their rows: whose address and length follow from the program's number and from arguments alone. Not done
for rows that are not stored: a cross entropy of 50,257 elements takes 86 us so, and 82 without.
"""

from __future__ import annotations

from xdsl.ir import Operation

from weft.base.remarks import CacheHint
from weft.ir import is_tensor, shape_of
from weft.ir.lane import ELEMENT_BITS, Value, is_elementwise

from .context import Context, elem_of

LEAST = 128 << 10
"""Bytes of a row's tile from which on it is asked for."""
GRANULE = 16
"""Bytes that such a request begins at, and has, a multiple of."""
EQUAL, SLT = 0, 2
"""Predicates of comparisons."""


def ask_for_next(c: Context, op: Operation) -> None:
    """Ask for the row that a later program loads where this one does; its blocks each for their part."""
    block, build = op.parent, c.build
    assert block is not None
    rows = [each for each in block.ops if each.name == "weft.load_row" and "aligned" in each.properties]
    size = sum(_bytes_of(each) for each in rows)
    is_reduced = any(each.name == "tt.reduce" for each in block.ops)
    if (
        not c.machine.rows_ahead
        or size < LEAST
        or not is_reduced
        or getattr(block.parent_op(), "name", "") != "tt.func"
    ):
        return
    distance = max(1, c.machine.rows_ahead // size)
    own = build.add("program_id", (), [("i32", 1)], {"axis": 0}).result
    later = _Later(c, c.plus(own, c.number(distance)))
    row, end = later.of(c[op.operands[0]]), later.of(c[op.operands[2]])
    if row is None or end is None or row is c[op.operands[0]]:
        return
    all_of = build.add("num_programs", (), [("i32", 1)], {"axis": 0}).result
    lanes, warps, blocks = (range((n - 1).bit_length()) for n in (c.program.lanes, c.program.warps, c.program.blocks))
    thread = build.linear([0], [1 << i for i in lanes], [c.program.lanes << i for i in warps])
    is_there = build.op("arith.cmpi", [later.program, all_of], "i1", predicate=SLT)
    is_first = build.op("arith.cmpi", [thread, c.number(0)], "i1", predicate=EQUAL)
    part = build.op("arith.muli", [end, c.number(_bytes_of(op) // shape_of(op.results[0].type)[0])], "i32")
    part = build.op("arith.shrui", [part, c.number(len(blocks))], "i32")
    part = build.op("arith.andi", [part, c.number(-GRANULE)], "i32")
    before = build.op("arith.muli", [build.linear([0], (), (), [1 << i for i in blocks]), part], "i32")
    begin = build.op("arith.addi", [row, build.op("arith.extsi", [before], "i64")], "i64")
    begin = build.op("arith.andi", [begin, c.number(-GRANULE, "i64")], "i64")
    has_any = build.op("arith.cmpi", [c.number(0), part], "i1", predicate=SLT)
    active = c.all_of([is_there, is_first, has_any])
    assert active is not None
    build.add("prefetch", [begin, part, active])
    why = f"memory is asked for {c.machine.rows_ahead} bytes of rows ahead of those that programs load"
    c.program.remarks.add(CacheHint(build.span, f"the row of the program {distance} later comes to the L2 cache", why))


class _Later:
    """What values are in a later program."""

    def __init__(self, c: Context, program: Value) -> None:
        self.c, self.program = c, program
        self.made: dict[Value, Value | None] = {}

    def of(self, value: Value) -> Value | None:
        """A value as that program has it, itself if it is the same; None if it does not follow from its number and
        arguments."""
        if value not in self.made:
            self.made[value] = self._anew(value)
        return self.made[value]

    def _anew(self, value: Value) -> Value | None:
        op = value.op
        if op is None or op.name == "constant":
            return value
        if op.name == "program_id":
            return self.program if op.attrs["axis"] == 0 else value
        operands = [self.of(x) for x in op.operands]
        if any(x is None for x in operands) or not (is_elementwise(op.name) or op.name == "rename"):
            return None
        if all(x is y for x, y in zip(operands, op.operands, strict=True)):
            return value
        given = [x for x in operands if x is not None]
        return self.c.build.add(op.name, given, [(value.elem, value.count)], dict(op.attrs)).result


def _bytes_of(op: Operation) -> int:
    """Of the tile of a row."""
    tile = op.results[0].type
    assert is_tensor(tile)
    return shape_of(tile)[0] * ELEMENT_BITS[elem_of(tile)] // 8
