"""Stores that leave the first-level cache to the loads of other blocks.

    if spares_first_cache(program):      # st.global.L1::no_allocate, not st.global

A load that is on its way has its place in L1, and L1 is what shared memory leaves of 256 KiB on a Hopper GPU: 61 KiB
where three blocks exchange 64 KiB each. There the loads of one block alone do not fit, and what another block stores
takes places from them. A transposed copy of tiles of 128 x 128 f32 takes 0.7 to 1.5 % less time on an H200 without
that. Where the loads of a block do fit, it brings nothing (tiles of 64 x 64), and where little memory is shared it
costs up to 1 % (softmax, copies: docs/performance.md), so that nobody else's stores are changed, nor any that says what
it wants of the caches.
"""

from __future__ import annotations

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram
from weft.targets.nvidia import blocks_at_a_time

__all__ = ["spares_first_cache"]

CAPABILITY = 90
"""Of the GPU on which this was measured."""
CACHE_BYTES = 256 << 10
"""Of shared memory and L1 together."""
RESERVED = 1 << 10
"""Bytes of shared memory that a block has beside its own."""


def spares_first_cache(program: LaneProgram) -> bool:
    """Whether the loads of one block of a program without loops are more than L1 holds beside shared memory."""
    if int(program.target.rpartition(":")[2]) != CAPABILITY or any(op.regions for op in program.body.ops):
        return False
    threads = program.warps * program.lanes
    blocks = blocks_at_a_time(CAPABILITY, threads, program.shared_bytes)
    left = CACHE_BYTES - blocks * (program.shared_bytes + RESERVED)
    return threads * sum(map(_loaded, program.body.ops)) > left


def _loaded(op: LaneOp) -> int:
    """Bytes of global memory that a thread loads."""
    if op.name != "load" or op.attrs["space"] != "global":
        return 0
    return op.results[0].count * ELEMENT_BITS[op.results[0].elem] // 8
