"""Limit how many blocks run at a time if they move large pieces of memory, or tiles whose rows begin anywhere.

    x + i[:, None] * n + j[None, :]        64 rows of 64 f16 each, and nothing known of n but that 4 divides it

Each row of such a tile is a piece of 128 bytes that begins at a multiple of 8 bytes, so that it lies in two lines of
the L1 cache and in five sectors of L2, the first and last of which belong to its neighbours' pieces as well. With as
many blocks as fit, a multiprocessor of an H100 asks for 16 x 64 x 2 lines, all of its L1 cache. With three blocks
it asks for 48 KB, and a transposition takes 0.75 to 0.85 of the time. The figures are in decision 28.

`few_blocks` returns the most blocks that a multiprocessor should run, so that the lines that they ask for at a time are
`Machine.lines_at_a_time` bytes. It sets a limit only where one was measured to help: on machines that have the figure,
for programs without loops (in loops, blocks wait for more than memory) that load tiles, compute little, and store, and
whose rows do not begin at sectors. If all that is known of a stride is that 16 divides it, rows mostly begin at
sectors, so there is no limit either.

`few_copies` does the same for programs that only copy 8 to 32 KB each, in two to eight warps. Memory is fastest if a
multiprocessor has few bytes in flight (`Machine.copied_at_a_time`). How few depends on how the warps divide the tile of
a block. In some layouts of Gluon kernels they take turns: warp 0 has the first bytes, warp 1 the next, and so on until
warp 0 has more. Then an H200 is fastest with five blocks of 8 KB, three of 16 KB or two of 32 KB:

    copies of 2 GiB, TB/s                            all blocks that fit   that few  Triton
    16 KB, single elements of 4 bytes                       4.08            4.24     4.22
    16 KB, runs of 16 bytes                                 4.00            4.15     4.02
    16 KB, runs of 32 bytes                                 3.24            4.15     3.23
    32 KB, runs of 32 bytes                                 3.23            4.15     3.39
    8 KB, runs of 32 bytes                                  3.33            4.18     3.33

If each warp copies one contiguous piece, as in the Triton language, three times as many bytes in flight are best, and
the gain is small: 4.19 instead of 4.17. If the lanes access 4 bytes at a time, a multiprocessor needs three blocks even
of 32 KB: two do not issue instructions fast enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from weft.analysis import AxisFacts
from weft.base import each_once
from weft.base.remarks import FewBlocks, RemarkCollector
from weft.ir import bit_width, element_of, is_tensor, pointee_of, shape_of, span_of
from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram, Value
from weft.machines import Machine
from weft.ops.table import ELEMENTWISE, ROWS

FEWER = 0.8
"""The part of these lines where rows begin at multiples of less than 16 bytes, and next to nothing is computed."""
LEAST, LEAST_OF_SEVERAL = 2, 4
"""Blocks at a time, at least; and where a block loads several tiles, which it adds or multiplies."""
NARROW = 4
"""Bytes of a lane's access below which a program that loads several tiles waits for its load instructions, not for
memory."""
MOST_COST, LITTLE_COST = 36.0, 16.0
"""What is computed of an element that is loaded, at most; and next to nothing. A sigmoid costs 35, an addition 1."""
SPECIALISED = 16
"""What integers are known to be multiples of, at most."""
MOVED = {
    *("arith.constant", "tt.broadcast", "tt.expand_dims", "tt.get_num_programs", "tt.get_program_id", "tt.load"),
    *("tt.make_range", "tt.reshape", "tt.return", "tt.splat", "tt.store", "tt.trans", "ttg.convert_layout"),
    *("weft.load_row", "weft.store_row"),
}
"""What a program may have besides operations on single elements."""
COPIED, BY_A_WARP, WARPS = range(8 << 10, (32 << 10) + 1), range(2 << 10, (8 << 10) + 1), (2, 4, 8)
"""Bytes that a block copies, and each of its warps; and warps that it may have."""
NARROW_BITS, LEAST_OF_NARROW = 32, 3
"""Bits that a lane accesses at a time, at least; and the fewest blocks at a time if it accesses no more."""
PIECES = 3
"""How many times as many bytes in flight are best if each warp copies one contiguous piece."""
MOST_ARITHMETIC = 4
"""Operations on what is loaded, at most; with more of them a program waits for more than memory."""
COPYING = ("constant", "program_id", "linear", "rename", "pack", "unpack", "select", "load", "store", "return")


def few_blocks(ops: Sequence[Operation], facts: AxisFacts, machine: Machine, remarks: RemarkCollector) -> int:
    """The blocks that a multiprocessor is to run at a time, at most; 0 for as many as fit."""
    if not machine.lines_at_a_time or any(op.name not in MOVED and op.name not in ELEMENTWISE for op in ops):
        return 0
    loads = [op for op in ops if op.name == "tt.load" and is_tensor(op.operands[0].type)]
    lines = [line for op in loads if (line := _lines(op.operands[0], facts, machine))]
    if not lines:
        return 0
    loaded = max(prod(shape_of(op.operands[0].type)) for op in loads)
    cost = sum(ROWS[op.name].cost * _elements(op) for op in ops if op.name in ELEMENTWISE) / loaded
    narrowest = min(_lane_bytes(op.operands[0], facts, machine) for op in loads)
    if cost > MOST_COST or (len(lines) > 1 and narrowest < NARROW):
        return 0
    apart = min(_pieces(op.operands[0], facts, machine)[2] for op in loads)
    part = FEWER if apart < 16 and cost <= LITTLE_COST else 1.0
    most = max(LEAST if len(lines) == 1 else LEAST_OF_SEVERAL, round(part * machine.lines_at_a_time / sum(lines)))
    rows = next(op for op in loads if _lines(op.operands[0], facts, machine))
    why = f"rows begin anywhere, so that the loads of a block touch {round(sum(lines))} bytes of cache lines"
    why += f", of which {machine.lines_at_a_time} at a time are best"
    remarks.add(FewBlocks(span_of(rows), f"at most {most} blocks on a multiprocessor", why))
    return most


def _elements(op: Operation) -> int:
    return prod(shape_of(op.results[0].type)) if is_tensor(op.results[0].type) else 0


def _pieces(pointers: SSAValue, facts: AxisFacts, machine: Machine) -> tuple[int, int, int]:
    """Of the pieces of memory that a tile of pointers falls into: how many, the bytes of each, and what divides the
    distances between them.
    """
    facts_of, size = facts.of(pointers), bit_width(pointee_of(element_of(pointers.type))) // 8
    axis = max(range(len(facts_of.contiguity)), key=facts_of.contiguity.__getitem__)
    run, apart, value = facts_of.contiguity[axis], machine.line_bytes, pointers
    while isinstance(op := value.owner, Operation) and op.name in ("tt.addptr", "tt.broadcast"):
        if op.name == "tt.addptr":
            apart = min(apart, facts.of(op.operands[1]).divisibility[axis] * size)
        value = op.operands[0]
    return prod(shape_of(pointers.type)) // run, run * size, apart


def _lane_bytes(pointers: SSAValue, facts: AxisFacts, machine: Machine) -> int:
    _, length, divisor = _pieces(pointers, facts, machine)
    return min(length, divisor)


def _lines(pointers: SSAValue, facts: AxisFacts, machine: Machine) -> float:
    """Bytes of the lines that a tile of rows lies in; 0 where its rows begin at sectors, or are not rows."""
    count, length, divisor = _pieces(pointers, facts, machine)
    size = bit_width(pointee_of(element_of(pointers.type))) // 8
    sector = machine.sector_bytes
    if count < 2 or length < sector or size < 2 or divisor >= min(sector, SPECIALISED * size):
        return 0.0
    return count * (length + machine.line_bytes - divisor)


def few_copies(program: LaneProgram) -> int:
    """The blocks of a program that copies one tile that a multiprocessor is to run at a time; 0 for any other."""
    ops, at_a_time = program.body.ops, program.machine.copied_at_a_time
    if not at_a_time or program.warps not in WARPS or program.blocks > 1 or program.shared or program.registers:
        return 0
    loads, stores = ([op for op in ops if op.name == name] for name in ("load", "store"))
    if len(loads) != 1 or len(stores) != 1 or not all(op.name in COPYING or op.name.startswith("arith.") for op in ops):
        return 0
    load, store = loads[0], stores[0]
    count, bits = load.operands[0].count, _access_bits(load)
    if bits < NARROW_BITS or _access_bits(store) != bits or load.attrs.get("volatile"):
        return 0
    if count != store.operands[0].count:
        return 0
    moved = count * bits // 8 * program.lanes
    computed, values = 0, {load.result}
    for op in ops:
        if op is not store and values & set(op.operands):
            computed, values = computed + 1, values | set(op.results)
    block = moved * program.warps
    if computed > MOST_ARITHMETIC or block not in COPIED or moved not in BY_A_WARP:
        return 0
    if _has_pieces(load.operands[0]):
        at_a_time *= PIECES
    most = max(LEAST_OF_NARROW if bits == NARROW_BITS else LEAST, round(at_a_time / block))
    if most >= program.machine.blocks_at_a_time(program.warps * program.lanes, 0):
        return 0
    why = f"a block only copies {block} bytes, and memory is fastest with {most * block} bytes in flight"
    program.remarks.add(FewBlocks(load.span, f"at most {most} blocks on a multiprocessor", why))
    return most


def _has_pieces(addresses: Value) -> bool:
    """Whether each warp accesses one contiguous piece: no register or lane strides as far as the next warp does."""
    todo = [addresses]
    for value in each_once(todo):
        op = value.op
        if op is not None and op.name == "linear" and any(op.attrs["warp"]):
            if min(filter(None, op.attrs["warp"])) <= max(*op.attrs["registers"], *op.attrs["lane"]):
                return False
        elif op is not None:
            todo += op.operands
    return True


def _access_bits(op: LaneOp) -> int:
    """What a lane accesses of global memory at a time, in elements of at most 32 bits; 0 of other accesses."""
    bits = ELEMENT_BITS[op.result.elem if op.results else op.operands[1].elem]
    return int(bits * op.attrs["vector"]) if op.attrs["space"] == "global" and bits <= 32 else 0
