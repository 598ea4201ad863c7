"""How many blocks a program is divided among if one block has no room for its row: a cluster.

    %x = tt.load ... : 131072xf32         4 warps: 1,024 elements in each thread, which has 255 registers
    %m = tt.reduce max %x
    %e = math.exp (%x - %m)               needed until it is stored: all of it is held while its sum is taken
    %s = tt.reduce sum %e
    tt.store ..., %e / %s

Words that do not fit spill to local memory, and go through the caches to DRAM and back: on an H100, 32 warps process
rows of 131,072 at half of copy speed. A cluster of eight blocks (`num_ctas=8`) has eight times as many registers, reads
the row once, and its blocks send each other the results of reductions (lower/nvidia/exchange.py). It reaches 0.99 of
copy speed with 16 warps in each block, and four blocks of 32 warps reach 0.97.

The pass counts the registers of a thread that are live across a reduction: loaded elements as they were loaded, since
values that an operation or two compute from them can be recomputed, and results of expensive functions. A block of 512
threads and more can also park words in shared memory (lower/held.py).

This is done for kernels without loops, branches, atomics and products, whose reduced tiles have one dimension, and
which do not ask for clusters themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts
from weft.base import each_once
from weft.base.remarks import InClusters, RemarkCollector
from weft.machines import Machine
from weft.ops.table import ELEMENTWISE, ROWS

from . import recoalesce

PART = 32
"""Elements of each thread to aim at: two blocks of 512 threads then run on a multiprocessor at a time, and one block of
1,024 holds its part in registers. With fewer elements barriers take longer than memory does. In blocks of 512 threads
and more it is so many words: rows of 131,072 elements of bf16 take 16 warps 186 us in clusters of four, and 196 in
clusters of eight (softmax on an H100; layer norm 195 and 223). In smaller ones it is not: 8 warps take 194 us for rows
of 65,536 in clusters of four, and 184 in clusters of eight."""
PARKED_PART = 64
"""Words of each thread, in blocks of 512 threads, for rows that are reduced more than once and need more than
FEW_BLOCKS otherwise. Half of the words wait in shared memory, and each reduction waits for half as many blocks. Layer
norms on an H200: 131,072 elements of f32 take 156 us in clusters of four and 161 in clusters of eight; of bf16, 156 in
clusters of two and 163 in clusters of four; 262,144 of bf16 take 165 in clusters of four and 171 in clusters of eight.
RMS norms, which have one reduction, lose by it: 157 us instead of 145."""
FEW_BLOCKS = 4
"""Blocks of a cluster, at most, in two cases:

* Blocks of 1,024 threads, if PARKED_PART words of each thread are then enough: an RMS norm of 262,144 elements of f32
  takes 153 us by four blocks and 166 by eight.
* Blocks of 512 threads that hold PART words of each thread instead of PARKED_PART, so that the L2 cache has room for
  prefetched rows of later programs (lower/next_rows.py). Layer norms of 65,536 elements then take 145 us instead of 148
  (f32, by four blocks) and 144 instead of 148 (bf16, by two), and an RMS norm of 50,257 of bf16 takes 139 instead of
  153 (by two). Eight blocks, which 131,072 elements of f32 would need, are not faster: 153 us instead of 151."""
OTHERS = 32
"""Registers of a thread for addresses, masks and what is computed at the moment."""
PARKING = 512
"""Threads of the smallest block whose words may wait in shared memory. A multiprocessor must also run enough threads:
of two blocks of 512, one loads while the other computes. With one such block alone, rows of 65,536 reach 0.68 to 0.95
of copy speed, and by a cluster of four 0.83 to 0.99."""
MOST_AGAIN = 8
"""What costs more is not computed twice, so that its row does not wait in shared memory."""
PLAIN = (
    *("tt.make_range", "tt.splat", "tt.get_program_id", "tt.get_num_programs", "tt.addptr", "tt.broadcast"),
    *("tt.expand_dims", "tt.load", "tt.store", "tt.reduce", "tt.return", "arith.constant"),
)


def blocks_for_rows(module: ModuleOp, machine: Machine, warps: int, remarks: RemarkCollector) -> int:
    """The blocks of a cluster that tile IR is best run by; 1 where one block has room, or nothing is known."""
    functions = [op for op in module.body.block.ops if op.name == "tt.func"]
    most = machine.portable_cluster
    if most < 2 or len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
        return 1
    ops = list(functions[0].regions[0].block.ops)
    threads = machine.threads(warps)
    if not any(op.name == "tt.reduce" for op in ops) or not all(map(_is_plain, ops)):
        return 1
    reduction, held = max(_held(ops).items(), key=lambda item: item[1])
    words, room = held // threads, room_of(machine, threads)
    again = _reduced(ops, 2, are_stored=threads >= PARKING)
    if machine.async_copies and again and _are_odd(again):
        blocks = next((n for n in (1, 2, 4) if machine.blocks_with_rows(threads, words // n)), most)
        if blocks > 1:
            why = f"{words} words of each thread wait in shared memory, in which one block has less room"
            remarks.add(InClusters(ir.span_of(reduction), f"a program is a cluster of {blocks} blocks", why))
        return blocks
    part = ir.shape_of(reduction.operands[0].type)[0] // threads
    if threads >= PARKING:
        part = min(part, _loaded(reduction) // threads)
    may_be_few = PARKING <= threads < machine.enough_threads and PART < part <= PART * FEW_BLOCKS
    if machine.rows_ahead and may_be_few and _reduced(ops, 1, are_stored=True):
        blocks = part // PART
        why = f"with {part} words in each thread, the L2 cache would have no room for rows of later programs"
        remarks.add(InClusters(ir.span_of(reduction), f"a program is a cluster of {blocks} blocks", why))
        return blocks
    if words <= room:
        return 1
    blocks = min(most, max(2, part // PART))
    tiles = [op for op in ops if op.name == "tt.load" and ir.is_tensor(op.results[0].type)]
    if threads >= PARKING and (again or threads >= machine.enough_threads) and not _are_odd(tiles):
        blocks = min(blocks, max(FEW_BLOCKS if threads >= machine.enough_threads else 2, words // PARKED_PART))
    why = f"{words} words of each thread are held across a reduction, and a thread of one block has room for {room}"
    remarks.add(InClusters(ir.span_of(reduction), f"a program is a cluster of {blocks} blocks", why))
    return blocks


def room_of(machine: Machine, threads: int) -> int:
    """Words of a row that a thread of a block of so many can hold.

    >>> from weft.machines import machine_of
    >>> [room_of(machine_of("cuda:90"), threads) for threads in (128, 256, 512, 1024)]
    [223, 223, 88, 88]
    """
    if threads < PARKING:
        return min(machine.thread_registers, machine.registers // threads) - OTHERS
    running = max(threads, machine.enough_threads)
    return machine.registers // running - OTHERS + machine.shared_bytes // (4 * running)


def _is_plain(op: Operation) -> bool:
    """Whether an operation is the same for a cluster as for a block, and nothing is known to be against it."""
    if op.name == "tt.reduce":
        return len(ir.shape_of(op.operands[0].type)) == 1
    volatile = op.properties.get("isVolatile")
    return (op.name in PLAIN or op.name in ELEMENTWISE) and not (volatile is not None and ir.int_value(volatile))


def _held(ops: list[Operation]) -> dict[Operation, int]:
    """For each reduction, how many words of 32 bits are there before it and needed after it, in the whole block."""
    number = {op: i for i, op in enumerate(ops)}
    sources: dict[SSAValue, set[SSAValue]] = {}
    """The tiles from which each tile can be computed cheaply."""
    needed: dict[SSAValue, int] = {}
    for op in ops:
        used = set[SSAValue]().union(*(sources.get(x, set()) for x in op.operands))
        for source in used:
            needed[source] = number[op]
        for result in op.results:
            if op.name == "tt.load" and ir.is_tensor(result.type):
                sources[result] = {result}
            elif used and ir.is_tensor(result.type):
                row = ROWS.get(op.name)
                is_cheap = len(used) == 1 and (row is None or row.cost == 1)
                sources[result] = used if is_cheap else {result}
    made: dict[SSAValue, int] = {x: number[op] for op in ops for x in op.results}
    held: dict[Operation, int] = {}
    for op in ops:
        if op.name == "tt.reduce":
            held[op] = sum(_words(x) for x, last in needed.items() if made[x] < number[op] < last)
    return held


def _reduced(ops: Sequence[Operation], least: int, are_stored: bool) -> list[Operation]:
    """The loads of rows, if each is reduced at least `least` times, and stored if `are_stored`, and if nothing
    expensive is computed from them for several of these; otherwise none."""
    users: dict[SSAValue, set[Operation]] = {}
    """The reductions and stores that are computed from each tile."""
    loads = list[Operation]()
    for op in reversed(ops):
        after = set[Operation]({op} if op.name in ("tt.reduce", "tt.store") else ())
        for result in op.results:
            if op.name in ELEMENTWISE:
                after |= users.get(result, set())
        if op.name in ELEMENTWISE and ROWS[op.name].cost > MOST_AGAIN and len(after) > 1:
            return []
        for tile in op.operands:
            if ir.is_tensor(tile.type):
                users.setdefault(tile, set()).update(after)
        if op.name == "tt.load" and ir.is_tensor(op.results[0].type):
            names = [user.name for user in users.get(op.results[0], ())]
            if "tt.reduce" in names:
                if names.count("tt.reduce") < least or (are_stored and "tt.store" not in names):
                    return []
                loads.append(op)
    return loads


def _are_odd(loads: Sequence[Operation]) -> bool:
    """Whether any of some rows begins at any address. Those that are reduced more than once wait in shared memory then,
    all of each (lower/kept_rows.py)."""
    facts = AxisFacts()
    bits = [ir.bit_width(ir.element_of(op.results[0].type)) for op in loads]
    return any(recoalesce.vector_of(op, facts, n) * n < 128 for op, n in zip(loads, bits, strict=True))


def _loaded(reduction: Operation) -> int:
    """The words of the rows that a reduction's operand is computed from, in the whole block."""
    words, todo = 0, list(reduction.operands)
    for value in each_once(todo):
        op = value.owner
        if isinstance(op, Operation) and op.name == "tt.load" and ir.is_tensor(value.type):
            words += _words(value)
        elif isinstance(op, Operation) and op.name in ELEMENTWISE:
            todo += op.operands
    return words


def _words(tile: SSAValue) -> int:
    count = 1
    for n in ir.shape_of(tile.type):
        count *= n
    return count * ir.bit_width(ir.element_of(tile.type)) // 32
