"""Let two groups of four warps alternate: one accesses memory while the other multiplies (ping-pong).

The eight warps of a block run on four SIMDs, each with one of warps 0 to 3 and one of warps 4 to 7. In step, both warps
of a SIMD would read their operands while its matrix unit is idle, and then compete for that unit. So barriers divide an
iteration into segments that access memory and segments that multiply, and warps 4 to 7 run the whole loop one barrier
behind warps 0 to 3 (`ping_pong` of `for`). With two phases of products an iteration is

                                              warps 0 to 3      warps 4 to 7
    0  begin loads of global memory,          memory            multiply        (3, of the iteration before)
       read all operands
    1  multiply the first half of K           multiply          memory          (0)
    2  store what was loaded to LDS           memory            multiply        (1)
    3  multiply the second half               multiply          memory          (2)

and with four phases operands are read in segments 0, 2 and 4, which takes fewer registers. A segment that multiplies
has a higher priority (`s_setprio`), and LLVM's scheduler moves nothing from one segment to another.

This is correct because the late group executes segment i while the early group executes segment i + 1. So two accesses
of LDS that may meet, one of them a write, need two barriers between them, where one is enough for warps in step.
Operands are read at least two segments before the store, and those of the next iteration two segments after it. Copies
directly to LDS write another buffer than the one that is read: they begin in segment 0, two segments after the last
read of their buffer, and all warps wait for them in the last segment for memory, two before the next iteration reads
them. The simulator runs the two groups apart, and would find a race.

This is done on CDNA if a phase of products is long enough to hide a memory access, there are enough registers, and LDS
has no room for another block, whose warps would be out of step anyway. RDNA has no separate matrix units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.base.remarks import PingPong
from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value
from weft.targets.table import instruction

from .slices import RDNA
from .used_up import is_movable, is_product

WARPS, FIRST = 8, 4
"""Of a block, and of the group that is ahead: a warp for each SIMD of a compute unit."""
PHASE = 512
"""Cycles of a warp's matrix instructions that a phase has at least: sixteen of 32 x 32 x 8 f16 on gfx942."""
MOST = 4
"""Phases of an iteration."""
ROOM = 216
"""Registers that accumulators, operands and what is loaded ahead may take: each warp of a block of eight has 256."""


LATER = ("commit", "write", "wait")
"""What is done of the next iteration once its loads or copies have begun."""


def multiply_in_turns(program: LaneProgram) -> None:
    """Rewrite the loops of a program in which that is possible and hides anything."""
    machine = program.machine
    if machine.generation >= RDNA or program.warps != WARPS or 2 * program.shared_bytes <= machine.shared_bytes:
        return
    blocks = [program.body, *(region for op in program.body.walk() for region in op.regions)]
    for block in blocks:
        for op in list(block.ops):
            if op.name == "for":
                _loop(program, block, op)


def _loop(program: LaneProgram, block: Block, loop: LaneOp) -> None:
    body = loop.regions[0]
    kinds = {op: _kind(op) for op in body.ops}
    slices = _slices(body) if "other" not in kinds.values() else []
    longest = min(MOST, int(sum(_cycles(op) for part in slices for op in part)) // PHASE)
    if longest < 2 or len(slices) < 2 or not _is_ahead(body, kinds):
        return
    for phases in range(longest, min(MOST, len(slices)) + 1):  # shorter ones take fewer registers
        segments = _segments(body, kinds, slices, phases)
        if segments is not None and _registers(segments, kinds) <= ROOM:
            break
    else:
        return
    waits = [op for op in body.ops if kinds[op] == "wait"]
    at = block.ops.index(loop)
    before = _written(loop, [("wait_async", dict(op.attrs)) for op in waits] + [("barrier", _attrs(program))])
    block.ops[at:at] = before
    loop.attrs["ping_pong"] = FIRST
    body.ops[:] = _put_together(program, loop, segments)
    what = f"warps 0 to {FIRST - 1} and {FIRST} to {WARPS - 1} multiply in turns, {phases} times an iteration"
    first = slices[0][0].span
    program.remarks.add(PingPong(first, what, "one group accesses memory while the other multiplies"))


def _kind(op: LaneOp) -> str:
    """What an operation has to do with memory; `other` for one that segments have no place for."""
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        if entry.products:
            return "product"
        reads = entry.touches == "shared" and not entry.stores
        return "read" if reads else "other" if entry.touches or not entry.results else "pure"
    if op.name in ("load", "store"):
        shared = op.attrs["space"] == "shared"
        if op.attrs.get("volatile") or (op.name == "store" and not shared):
            return "other"
        return "write" if op.name == "store" else "read" if shared else "fetch"
    if op.name == "barrier":
        return "barrier" if op.attrs["scope"] == "block" and op.attrs["inserted"] and "of" not in op.attrs else "other"
    places = {"copy_async": "copy", "commit_async": "commit", "wait_async": "wait", "yield": "yield", "shared": "pure"}
    return places.get(op.name, "pure" if is_movable(op) else "other")


def _slices(body: Block) -> list[list[LaneOp]]:
    """Products none of which adds to another one's result; none where one multiplies what others gave."""
    number: dict[Value, int] = {}
    slices: list[list[LaneOp]] = []
    for op in body.ops:
        needed = max((number.get(x, -1) for x in op.operands), default=-1)
        if is_product(op):
            if any(x in number for x in op.operands[:2]):
                return []
            if needed == len(slices) - 1:
                slices.append([])
            slices[-1].append(op)
            needed = len(slices) - 1
        if needed >= 0:
            number.update(dict.fromkeys(op.results, needed))
    return slices


def _cycles(op: LaneOp) -> float:
    entry = instruction(op.attrs["isa"])
    return entry.cost * (op.results[0].count // entry.results[0].count)


def _is_ahead(body: Block, kinds: dict[LaneOp, str]) -> bool:
    """Whether operands are read, and then the next iteration's stored, with no order among the stores; or waited for,
    and then read while others are copied, one barrier in front of both."""
    places: dict[str, list[int]] = {kind: [] for kind in ("read", "write", "copy", "commit", "wait", "barrier")}
    for i, op in enumerate(body.ops):
        places.setdefault(kinds[op], []).append(i)
    reads, writes, copies, waits = (places[k] for k in ("read", "write", "copy", "wait"))
    if not reads:
        return False
    if writes:
        among = any(writes[0] < i < writes[-1] for i in places["barrier"])
        return not (copies or waits or places["commit"] or among) and reads[-1] < writes[0]
    if not copies or [len(places[k]) for k in ("wait", "commit", "barrier")] != [1, 1, 1]:
        return False
    (barrier,), (commit,) = places["barrier"], places["commit"]
    return waits[0] < barrier < min(reads[0], copies[0]) and commit > copies[-1]


def _segments(
    body: Block, kinds: dict[LaneOp, str], slices: Sequence[Sequence[LaneOp]], phases: int
) -> list[list[LaneOp]] | None:
    """The operations of each segment in their order, but for barriers; None where one would come before its operands.

    Reads come two barriers before a store. What is computed of operands that were read is computed right behind the
    reads; all else, addresses and what is done to the next iteration's elements, as late as it can be.
    """
    stores = "write" in kinds.values()
    end, last_store, last_read = 2 * phases - 1, 2 * phases - 2, 2 * (phases - (2 if stores else 1))
    ahead = [op for op in body.ops if kinds[op] in ("fetch", "copy")]
    second = 2 if phases > 2 else 0
    fixed = {op: 2 * (i * phases // len(slices)) + 1 for i, part in enumerate(slices) for op in part}
    fixed |= {op: second if 2 * i >= len(ahead) else 0 for i, op in enumerate(ahead)}
    fixed |= {op: second if kinds[op] == "commit" else last_store for op in body.ops if kinds[op] in LATER}
    late: dict[Value, int] = {}
    segment: dict[LaneOp, int] = {}
    for op in reversed(body.ops):
        wanted = min((late.get(x, end) for x in op.results), default=end)
        at = fixed.get(op, min(wanted // 2 * 2, last_read) if kinds[op] == "read" else wanted)
        segment[op] = at
        for x in op.operands:
            late[x] = min(late.get(x, at), at)
    made: dict[Value, int] = {}
    operands: set[Value] = set()
    """What was read, and what comes of it."""
    for op in body.ops:
        ready = max((made.get(x, 0) for x in op.operands), default=0)
        if kinds[op] == "read" or (kinds[op] == "pure" and not operands.isdisjoint(op.operands)):
            operands.update(op.results)
            segment[op] = segment[op] if kinds[op] == "read" else ready
        if ready > segment[op]:
            return None
        made.update(dict.fromkeys(op.results, segment[op]))
    parts: list[list[LaneOp]] = [[] for _ in range(2 * phases)]
    for op in body.ops:
        if kinds[op] != "barrier":
            parts[segment[op]].append(op)
    return parts


def _registers(segments: Sequence[Sequence[LaneOp]], kinds: dict[LaneOp, str]) -> int:
    """Of a thread: sums, what has been loaded of global memory, operands from their read to the last product."""
    placed = [(i, op) for i, part in enumerate(segments) for op in part]
    last: dict[Value, int] = {}
    for i, op in reversed(placed):  # an operand is held for as long as what is computed of it, which is no larger
        until = max((last.get(x, i) for x in op.results), default=i) if kinds[op] == "pure" else i
        last.update({x: max(last.get(x, 0), until) for x in op.operands})
    reads = [(i, last.get(op.result, i), _words(op)) for i, op in placed if kinds[op] == "read"]
    products = [op for _, op in placed if kinds[op] == "product"]
    added = {x for op in products for x in op.operands}
    held = sum(_words(op) for op in products if op.result not in added)
    held += sum(_words(op) for _, op in placed if kinds[op] == "fetch")
    return held + max(sum(w for a, b, w in reads if a <= i <= b) for i in range(len(segments)))


def _words(op: LaneOp) -> int:
    return -(-op.result.count * ELEMENT_BITS[op.result.elem] // 32)


def _attrs(program: LaneProgram) -> dict[str, object]:
    """Of a barrier that warps reach in different places of the program."""
    return {"scope": "block", "inserted": True, "id": 0, "warps": program.warps}


def _written(like: LaneOp, ops: Sequence[tuple[str, Mapping[str, object]]]) -> list[LaneOp]:
    """Operations without operands or results, for the line of another."""
    build = Builder(Block())
    build.span = like.span
    for name, attrs in ops:
        build.add(name, (), (), {**attrs})
    return build.block.ops


def _put_together(program: LaneProgram, loop: LaneOp, segments: Sequence[Sequence[LaneOp]]) -> list[LaneOp]:
    """Segments with a barrier behind each, at which LLVM's scheduler stops."""
    stop, high, low = (("instruction", {"isa": name}) for name in ("slice", "setprio.1", "setprio.0"))
    ops: list[LaneOp] = []
    *_, end = segments[-1]
    for i, part in enumerate(segments):
        multiplies = i % 2
        ops += _written(loop, [high] if multiplies else [])
        ops += [op for op in part if op is not end]
        ops += _written(loop, [*([low] if multiplies else []), stop, ("barrier", _attrs(program)), stop])
    return [*ops, end]
