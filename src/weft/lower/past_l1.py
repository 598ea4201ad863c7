"""Load rows that are read once past the L1 cache, which then keeps the data of later loads.

    %x = load %row                      %x = load %row {evict = no_allocate}      kept in shared memory from here on
    barrier                             barrier
    %w = load %weights          ->      %w = load %weights                        the same for every program
    store %out, %y                      store %out, %y

A program that keeps a row in shared memory (parked.py) leaves little of a multiprocessor's memory to the cache: 30 of
256 KB, where two blocks of 512 threads park 112 KB each. With the row streaming through it, weights of 128 KB come from
L2 each time. The RMS norm of rows of f32 gains on an H100 from 24,001 columns on (32,003 columns 0.84 to 0.87 of copy
speed, 50,257 0.77 to 0.84, 65,535 0.81 to 0.88) and loses below (16,385 columns 0.92 to 0.90). Stores past L1 gain no
more where other kernels run in between, as they do. A program that loads nothing behind its last barrier, a softmax, is
left as it is; so is one that parks less than half of shared memory, whose weights stay in L1 anyway (rows of 16 bits
lose 2 to 4 %).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from weft.base.remarks import CacheHint
from weft.ir.lane import LaneOp, LaneProgram

from .granules import WIDE


def leave_l1(program: LaneProgram) -> None:
    """Mark the loads before the first barrier, if tiles are loaded behind the last one."""
    ops = program.body.ops
    walls = [k for k, op in enumerate(ops) if op.name == "barrier" and op.attrs["scope"] == "block"]
    if not walls or sum(op.result.count for op in _loads(ops[walls[-1] :])) < WIDE:
        return
    for op in _loads(ops[: walls[0]]):
        if not any(op.attrs.get(hint) for hint in ("cache", "evict", "volatile")):
            op.attrs = {**op.attrs, "evict": "no_allocate"}
            why = "the row is kept in shared memory from here on, and L1 is left to what all blocks load"
            program.remarks.add(CacheHint(op.span, "the load leaves nothing in the L1 cache", why))


def _loads(ops: Iterable[LaneOp]) -> Iterator[LaneOp]:
    """The loads of global memory, also those in branches."""
    for op in ops:
        if op.name == "load" and op.attrs["space"] == "global":
            yield op
        for region in op.regions:
            yield from _loads(region.ops)
