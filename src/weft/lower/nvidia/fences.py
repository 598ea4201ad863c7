"""Fences after ordinary stores into bytes that bulk copies write too: buffers that share memory.

    store shared %a, %x                          store shared %a, %x
    ...                              becomes     fence async
    bulk copy to %b                              ...
                                                 bulk copy to %b

if `%a` and `%b` share bytes and the copy may come after the store. The kernel has fences for uses of one buffer, but
that two buffers share bytes is the compiler's decision. Fences are inserted after placement and before barriers, which
order the fence before the copy. Data that threads copy asynchronously (cp.async) has arrived only after a wait, so its
fence comes after that wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.analysis import touched_buffers
from weft.base.remarks import Fence, Site
from weft.ir.lane import Allocation, Block, LaneOp, LaneProgram

from ..telling import site_of_access


def insert_fences(program: LaneProgram) -> None:
    """Put a fence after each ordinary store before which a bulk copy to the same bytes may come, if there is none."""
    if not any(_is_bulk(op) for op in program.body.walk()):
        _drop(program.body)
        return
    touched = [(op, buffers) for op, kind, buffers in touched_buffers(program) if kind == "write"]
    places = _places(program.body)
    copies = [(op, buffers) for op, buffers in touched if _is_bulk(op)]
    waits = [op for op in program.body.walk() if op.name == "wait_async"]
    wanted: Wanted = {}
    for op, buffers in touched:
        for copy, others in copies if not _is_bulk(op) else ():
            if _may_follow(places[id(copy)], places[id(op)]) and _share(program.shared, buffers, others):
                is_copied = op.name == "copy_async"
                for end in (x for x in waits if _may_follow(places[id(x)], places[id(op)])) if is_copied else (op,):
                    wanted.setdefault(end, (op, copy))
    _insert(program, program.body, wanted, covered=True)  # behind its end no bulk copy comes
    for op in program.body.walk() if program.remarks else ():
        if op.name == "fence" and op.attrs.get("made_barriers"):
            program.remarks.add(Fence(op.span, Site("the making of an mbarrier", op.span), Site("the copy engine")))


def _is_bulk(op: LaneOp) -> bool:
    return op.name == "instruction" and str(op.attrs["isa"]).startswith("cp.async.bulk.tensor")


def _is_fence(op: LaneOp) -> bool:
    return op.name == "fence" and str(op.attrs["kind"]).startswith("async")


def _share(shared: Sequence[Allocation], ours: frozenset[int], theirs: frozenset[int]) -> bool:
    """Whether two different buffers share bytes."""
    for a, b in ((shared[i], shared[k]) for i in ours for k in theirs if i != k):
        if a.offset is None or b.offset is None:
            continue
        if a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes:
            return True
    return False


Wanted: TypeAlias = dict[LaneOp, tuple[LaneOp, LaneOp]]
"""Behind what a fence is wanted, and between which store and which bulk copy."""
TELLING = ("mbarrier.arrive", "mbarrier.copies.arrive", "barrier.cluster.arrive")
"""Instructions by which others learn that a warp has come so far."""

Place = tuple[int, frozenset[int]]
"""The number of an operation in the order of the text, and the loops and partitions that it is in."""


def _places(body: Block) -> dict[int, Place]:
    places: dict[int, Place] = {}

    def walk(block: Block, around: frozenset[int]) -> None:
        for op in block.ops:
            places[id(op)] = (len(places), around)
            for region in op.regions:
                inner = around | {id(op)} if op.name in ("for", "while", "partitions") else around
                walk(region, inner)

    walk(body, frozenset())
    return places


def _may_follow(later: Place, earlier: Place) -> bool:
    return earlier[0] < later[0] or bool(earlier[1] & later[1])


def _drop(block: Block) -> None:
    """No bulk copy, nobody to see that mbarriers were made."""
    block.ops[:] = [op for op in block.ops if op.name != "fence" or not op.attrs.get("inserted")]
    for op in block.ops:
        for region in op.regions:
            _drop(region)


def _insert(program: LaneProgram, block: Block, wanted: Wanted, covered: bool = False) -> None:
    """Insert fences into a block; `covered` says of what follows it that a fence comes before any bulk copy may."""
    ops: list[LaneOp] = []
    for op in reversed(block.ops):
        for region in op.regions:
            _insert(program, region, wanted)
        covered = _is_covered(program, op, covered)
        if op in wanted and not covered:
            ops.append(LaneOp("fence", attrs={"kind": "async", "inserted": True}, span=op.span))
            program.remarks.add(Fence(op.span, *map(site_of_access, wanted[op])))
            covered = True
        ops.append(op)
    block.ops[:] = reversed(ops)


def _is_covered(program: LaneProgram, op: LaneOp, after: bool) -> bool:
    """Whether a fence comes, from an operation on, before any bulk copy may: one of this warp, or one of others, whom
    it tells that it has come so far. `after` says so of what follows the operation."""
    if _is_fence(op):
        return True
    if _is_bulk(op) or _tells_others(program, op):
        return False
    ways = []
    for region in op.regions:
        covered = after
        for inner in reversed(region.ops):
            covered = _is_covered(program, inner, covered)
        ways.append(covered)
    return all(ways) and (after or (op.name == "if" and bool(ways)))  # a loop may have no iteration


def _tells_others(program: LaneProgram, op: LaneOp) -> bool:
    """Whether warps of other partitions, or of other blocks, may go on because of an operation."""
    if op.name == "barrier":
        return bool(op.attrs["scope"] == "cluster" or op.attrs.get("warps", 0) == program.warps)
    return op.name == "instruction" and str(op.attrs["isa"]).startswith(TELLING)
