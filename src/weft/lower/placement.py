"""Assign an address to each buffer of shared memory: buffers whose lifetimes do not overlap may share bytes.

    shared 0: 8192 bytes, in use from 10 to 40            at 0
    shared 1:  512 bytes, in use from 20 to 25            at 8192
    shared 2: 4096 bytes, in use from 41 to 44            at 0

Buffers are placed one after the other, each at the lowest address where it overlaps no buffer that is live at the same
time. This is done for several orders (the largest first, the longest-lived first, by time), and the smallest total is
taken. Buffers are then moved away from bytes that others use, so that sharing needs no barrier: within that total, and
small ones, such as those of reductions, into a few more bytes, if as many blocks still fit on a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.analysis import Lifetime, Numbered, lifetimes, lines_of_buffers, touched_buffers
from weft.base import OutOfResources
from weft.ir.lane import Allocation, LaneProgram

Lives = Sequence[Lifetime | None]
Offsets = dict[int, int]

ORDERS: tuple[Callable[[Allocation, Lifetime], tuple[int, ...]], ...] = (
    lambda a, life: (-a.bytes, life.first),
    lambda a, life: (life.first, -a.bytes),
    lambda a, life: (life.first - life.last, -a.bytes),
    lambda a, life: (-a.alignment, -a.bytes, life.first),
)


def place(program: LaneProgram) -> None:
    """Set every buffer's offset. OutOfResources, with a table of the buffers, where a block cannot have so much."""
    if not program.shared:
        return
    numbered = Numbered(program)
    buffers, lives = program.shared, _alone(program, lifetimes(program, numbered))
    best = _lowest_of_orders(buffers, lives)
    best = _spread(buffers, lives, best, _room(program, _total(buffers, best)))
    for i, buffer in enumerate(buffers):
        buffer.offset = best.get(i, 0)
        if i not in best:
            buffer.bytes = 0  # nothing uses it
    limit = program.machine.shared_bytes
    if program.remarks or program.shared_bytes > limit:
        for buffer, lines in zip(buffers, lines_of_buffers(program, numbered), strict=True):
            buffer.lines = lines
    if program.shared_bytes > limit:
        raise _too_much(program, lives, limit)


def needed_bytes(program: LaneProgram) -> int:
    """How much shared memory a program needs at least, in the order that its operations have now."""
    lives = _alone(program, lifetimes(program))
    return _total(program.shared, _lowest_of_orders(program.shared, lives))


def _lowest_of_orders(buffers: Sequence[Allocation], lives: Lives) -> Offsets:
    """Where each buffer lies if they are placed in the order that needs the fewest bytes."""
    used = [(i, life) for i, life in enumerate(lives) if life is not None]
    choices = []
    for order in ORDERS:
        offsets: Offsets = {}
        for i, _ in sorted(used, key=lambda x: order(buffers[x[0]], x[1])):
            offsets[i] = _lowest(buffers, lives, offsets, i)
        choices.append(offsets)
    return min(choices, key=lambda offsets: _total(buffers, offsets), default={})


def _alone(program: LaneProgram, lives: Lives) -> Lives:
    """Small buffers that other blocks of a cluster read share bytes with none: others would have to wait for them."""
    if program.blocks == 1:
        return lives
    far = {b for op, _, buffers in touched_buffers(program) if op.attrs.get("space") == "cluster" for b in buffers}
    ends = [life.last for life in lives if life is not None]
    small = {b for b in far if program.shared[b].bytes <= SMALL}
    return [Lifetime(0, max(ends)) if i in small and life else life for i, life in enumerate(lives)]


SMALL = 1024
"""Bytes of a buffer that is cheaper than a barrier of the cluster."""
ROOM = 256
"""Bytes that are cheaper than barriers of the block: two reductions of 32 warps."""


def _total(buffers: Sequence[Allocation], offsets: Offsets) -> int:
    return max((at + buffers[i].bytes for i, at in offsets.items()), default=0)


def _aligned(at: int, alignment: int) -> int:
    return -(-at // alignment) * alignment


def _neighbours(lives: Lives, offsets: Offsets, index: int) -> list[int]:
    """The buffers placed so far that are in use at the same time."""
    mine = lives[index]
    return [i for i in offsets if i != index and (life := lives[i]) and mine and life.overlaps(mine)]


def _candidates(buffers: Sequence[Allocation], lives: Lives, offsets: Offsets, index: int) -> list[int]:
    """Offsets that are free, the lowest first: zero, and after each buffer."""
    taken = [(offsets[i], offsets[i] + buffers[i].bytes) for i in _neighbours(lives, offsets, index)]
    size, alignment = buffers[index].bytes, buffers[index].alignment
    starts = {0, *(_aligned(offsets[i] + buffers[i].bytes, alignment) for i in offsets)}
    return sorted(s for s in starts if all(s + size <= low or high <= s for low, high in taken))


def _lowest(buffers: Sequence[Allocation], lives: Lives, offsets: Offsets, index: int) -> int:
    return _candidates(buffers, lives, offsets, index)[0]


def _room(program: LaneProgram, total: int) -> int:
    """How many bytes small buffers may lie in, where so many are needed: as many blocks fit with them."""
    machine, threads = program.machine, program.warps * program.lanes
    room = total + ROOM
    fit = (machine.blocks_at_a_time(threads, bytes) for bytes in (total, room))
    return room if room <= machine.shared_bytes and len(set(fit)) == 1 else total


def _spread(buffers: Sequence[Allocation], lives: Lives, offsets: Offsets, room: int) -> Offsets:
    """Let buffers share as few bytes as possible: within the same total, and small buffers within `room`."""
    total, spread = _total(buffers, offsets), dict(offsets)
    for i in sorted(spread, key=lambda i: buffers[i].bytes):
        others = {k: at for k, at in spread.items() if k != i}
        limit = room if buffers[i].bytes <= ROOM else total
        options = [at for at in _candidates(buffers, lives, others, i) if at + buffers[i].bytes <= limit]
        spread[i] = min([spread[i], *options], key=lambda at: _shared_with(buffers, others, at, buffers[i].bytes))
    return spread


def _shared_with(buffers: Sequence[Allocation], others: Offsets, at: int, size: int) -> int:
    return sum(at < o + buffers[k].bytes and o < at + size for k, o in others.items())


def _too_much(program: LaneProgram, lives: Lives, limit: int) -> OutOfResources:
    rows = [("bytes", "at", "what", "in use")]
    largest = sorted((i for i, life in enumerate(lives) if life), key=lambda i: -program.shared[i].bytes)
    for i in largest:
        buffer, lines = program.shared[i], program.shared[i].lines
        named = f"{buffer.what or 'buffer'} of {buffer.span}" if buffer.span else buffer.what or "buffer"
        used = f"lines {lines[0].line} to {lines[1].line}" if lines else "-"
        rows.append((str(buffer.bytes), str(buffer.offset), named, used))
    widths = [max(len(row[k]) for row in rows) for k in range(4)]
    details = [f"  {r[0]:>{widths[0]}}  {r[1]:>{widths[1]}}  {r[2]:<{widths[2]}}  {r[3]}".rstrip() for r in rows]
    hint = _advice(program, largest)
    return OutOfResources(program.shared_bytes, limit, "shared memory", hint, details=details)


def _advice(program: LaneProgram, largest: Sequence[int]) -> str:
    purpose = program.shared[largest[0]].what
    size = f"the largest buffer, of {program.shared[largest[0]].bytes} bytes,"
    if "local_alloc" in purpose:
        return f"{size} is a tile (or the stages of one): smaller tiles (BLOCK sizes), or fewer stages (num_stages)"
    if "reduction" in purpose or "scan" in purpose:
        return f"{size} has a value of each thread: fewer warps (num_warps), or smaller tiles (BLOCK sizes)"
    return f"{size} is for moving a tile between layouts: smaller tiles (BLOCK sizes), or layouts that agree"
