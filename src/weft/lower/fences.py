"""Fences before bulk copies into bytes that ordinary stores have used: buffers that share memory.

    store shared %a, %x                          store shared %a, %x
    ...                              becomes     ...
    bulk copy to %b                              fence async
                                                 bulk copy to %b

if `%a` and `%b` share bytes. For what one buffer is used for, the kernel says where fences are needed; that two buffers
share bytes is the compiler's doing. Done after placement, before barriers: they come between the fence and the copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.analysis import touched_buffers
from weft.ir.lane import Allocation, Block, LaneOp, LaneProgram

__all__ = ["insert_fences"]


def insert_fences(program: LaneProgram) -> None:
    """Put a fence before each bulk copy that may come after ordinary stores to the same bytes."""
    if not any(_is_bulk(op) for op in program.body.walk()):
        return
    touched = [(op, buffers) for op, how, buffers in touched_buffers(program) if how == "write"]
    places = _places(program.body)
    stores = [(op, buffers) for op, buffers in touched if not _is_bulk(op)]
    wanted = set()
    for op, buffers in touched:
        if _is_bulk(op) and any(
            _may_follow(places[id(op)], places[id(store)]) and _share(program.shared, buffers, others)
            for store, others in stores
        ):
            wanted.add(id(op))
    _insert(program.body, wanted)


def _is_bulk(op: LaneOp) -> bool:
    return op.name == "instruction" and str(op.attrs["isa"]).startswith("cp.async.bulk.tensor")


def _share(shared: Sequence[Allocation], ours: frozenset[int], theirs: frozenset[int]) -> bool:
    """Whether two different buffers share bytes."""
    for a, b in ((shared[i], shared[k]) for i in ours for k in theirs if i != k):
        if a.offset is None or b.offset is None:
            continue
        if a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes:
            return True
    return False


Place = tuple[int, frozenset[int]]
"""The number of an operation in the order of the text, and the loops and partitions that it is in."""


def _places(body: Block) -> dict[int, Place]:
    found: dict[int, Place] = {}

    def walk(block: Block, around: frozenset[int]) -> None:
        for op in block.ops:
            found[id(op)] = (len(found), around)
            for region in op.regions:
                inner = around | {id(op)} if op.name in ("for", "while", "partitions") else around
                walk(region, inner)

    walk(body, frozenset())
    return found


def _may_follow(later: Place, earlier: Place) -> bool:
    return earlier[0] < later[0] or bool(earlier[1] & later[1])


def _insert(block: Block, wanted: set[int]) -> None:
    ops: list[LaneOp] = []
    for op in block.ops:
        for region in op.regions:
            _insert(region, wanted)
        if id(op) in wanted:
            ops.append(LaneOp("fence", attrs={"kind": "async"}, span=op.span))
        ops.append(op)
    block.ops[:] = ops
