"""Barriers where two accesses of shared memory may meet, and only there.

    store shared %a, %x                       store shared %a, %x
    %y = load shared %b            becomes    barrier {scope=block}
    store shared %c, %y                       %y = load shared %b
                                              barrier {scope=block}
                                              store shared %c, %y

if `%b` are places of other threads than `%a`, and `%c` than `%b`. If all accesses that meet are of one warp, a barrier
of the warp is enough. First, a barrier is inserted before each access that needs one, as late as possible. Then those
that others make redundant (as at the end of a loop) are removed again, and so is each that directly follows another.
"""

from __future__ import annotations

from dataclasses import replace

from weft.analysis import ORDERING, Hazards, Pending, is_block_barrier, is_cluster_barrier
from weft.ir.lane import Allocation, Block, Builder, LaneOp, LaneProgram, is_elementwise

from .telling import tell_barriers


def insert_barriers(program: LaneProgram) -> None:
    """Order all accesses of shared memory that may meet. Buffers must have been placed."""
    first = program.body.ops[0] if program.body.ops else None
    if first is None or first.name != "partitions":
        _insert(program, None)
        return
    for number, (region, warps) in enumerate(zip(first.regions, first.attrs["warps"], strict=True)):
        _insert(replace(program, body=region, warps=warps), number + 1 if number else 0)
    _give_barriers(program)


def _give_barriers(program: LaneProgram) -> None:
    """Shared memory behind all else for the barriers of a cluster that partitions have, 8 bytes for each partition.

    The hardware's own barrier of the cluster is for all warps of its blocks.
    """
    places: dict[int, int] = {}
    for op in program.body.walk():
        if is_cluster_barrier(op, "wait") and "id" in op.attrs:
            number = int(op.attrs["id"])
            if number not in places:
                places[number] = -(-program.shared_bytes // 8) * 8
                span = op.span
                program.shared.append(Allocation(8, 8, places[number], span, "a barrier of the cluster"))
            op.attrs["at"] = places[number]


def _insert(program: LaneProgram, number: int | None) -> None:
    """In a program, or in a partition whose own barrier has this number."""
    inserted: list[tuple[Block, LaneOp]] = []
    ordered: dict[LaneOp, LaneOp] = {}
    sides: dict[LaneOp, tuple[LaneOp, LaneOp | None]] = {}

    def insert(block: Block, index: int, scope: str, earlier: Pending) -> bool:
        build = Builder(Block())
        build.span = block.ops[min(index, len(block.ops) - 1)].span
        build.partition = (number, program.warps) if number is not None else None
        build.barrier(scope)
        (op,) = build.block.ops
        block.ops.insert(index, op)
        inserted.append((block, op))
        ordered[op] = earlier.op
        sides[op] = earlier.op, block.ops[index + 1] if index + 1 < len(block.ops) else None
        return True

    hazards = Hazards(program)
    hazards.find(insert)
    loops = _in_loops(program.body, program.programs_each > 1)
    mine = ((b, o) for b, o in inserted if b in loops and not _is_alone(b, o, ordered[o]))
    left = [*_after_making(program.body), *mine]
    if left and hazards.are_none():
        tops = {inner: op for op in program.body.ops for region in op.regions for inner in region.blocks()}
        for block, op in left:
            hazards.are_none_without(op, block, tops.get(block, op))
    _drop_doubled(program, program.body)
    tell_barriers(program, sides, hazards.buffers)


def _is_alone(block: Block, barrier: LaneOp, earlier: LaneOp) -> bool:
    """Whether a barrier comes after an access in one block, with nothing between that might do as well.

    It was put there for an access right behind it, which would meet that one. So it is needed, whatever else is.
    """
    at = next(i for i, op in enumerate(block.ops) if op is barrier)
    if block.ops[at + 1].name == "barrier":
        return False
    for op in reversed(block.ops[:at]):
        if op is earlier:
            return True
        if op.regions or op.name in ORDERING:
            return False
    return False


def _in_loops(block: Block, inside: bool = False) -> set[Block]:
    """The blocks that may be run again: only there may a barrier that comes later do for one that was put in before."""
    blocks = {block} if inside else set()
    for op in block.ops:
        for region in op.regions:
            blocks |= _in_loops(region, inside or op.name in ("for", "while"))
    return blocks


def _after_making(block: Block) -> list[tuple[Block, LaneOp]]:
    """The barriers that stand after mbarriers were made: others may do as well."""
    pairs = [(block, op) for op in block.ops if op.name == "barrier" and op.attrs.get("made_barriers")]
    return pairs + [pair for op in block.ops for region in op.regions for pair in _after_making(region)]


NEITHER_HERE_NOR_THERE = (
    "constant", "linear", "elect", "rename", "join", "pack", "unpack", "permute", "shuffle", "shared",
    "remote",
)  # fmt: skip


def _drop_doubled(program: LaneProgram, block: Block) -> None:
    """Barriers of the block between which only registers are used are one."""
    after_barrier, kept = False, list[LaneOp]()
    for op in block.ops:
        for region in op.regions:
            _drop_doubled(program, region)
        if is_cluster_barrier(op, "wait"):
            before = kept[-1] if kept else None
            arrived = op.name == "barrier"  # in one; else what comes after the arrival is ordered by nothing here
            if arrived and before is not None and is_block_barrier(program, before) and _is_own(program, before):
                kept.pop()
            after_barrier = arrived or (before is not None and is_cluster_barrier(before, "arrive"))
        elif is_block_barrier(program, op) and op.attrs["scope"] == "block":
            if after_barrier and op.attrs.get("warps", program.warps) == program.warps:  # not one with other partitions
                continue
            after_barrier = True
        elif op.name not in NEITHER_HERE_NOR_THERE and not is_elementwise(op.name):
            after_barrier = False
        kept.append(op)
    block.ops[:] = kept


def _is_own(program: LaneProgram, op: LaneOp) -> bool:
    """Is this a barrier of the block, or of the partition that is looked at, and not one with other partitions?"""
    return op.attrs["scope"] == "block" and bool(op.attrs.get("warps", program.warps) == program.warps)


def is_ordered(program: LaneProgram) -> bool:
    """Whether barriers order all accesses that may meet."""
    return Hazards(program).are_none()
