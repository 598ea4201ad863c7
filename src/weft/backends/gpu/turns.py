"""Warps of a block that copies load one after the other, and few blocks run at a time.

    turns = turns_of(program)            # None for all but programs that copy a tile from one array to another
    turns.take, turns.hand_on            # assembly: before the loads, and after the first half of them

Memory is fastest when little of it is asked for at any time, and in order. A block that loads 16 KB at once asks for
four pieces, and as many blocks as fit on a multiprocessor for twelve times that. So a warp waits until the one before
has half of what it loads, and 64 KB are copied at a time: 4.25 instead of 4.18 TB/s on an H200 with blocks of 16 KB,
4.23 instead of 4.21 with 8 KB. With blocks of 4 KB it is so without help (4.25). Either alone brings less (4.18, 4.21);
so do pauses, other orders of the accesses, and each warp waiting for itself (docs/performance.md).

Turns are about time alone: no result depends on them, and the simulator does not know of them. In a launch of few
blocks nobody waits, because there the time until the last warp has its data counts, not the traffic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram

__all__ = ["Turns", "turns_of"]

AT_A_TIME = 64 << 10
"""Bytes that the blocks of a multiprocessor copy at a time."""
CACHED = 64 << 20
"""Bytes of a launch below which nobody waits: much of them is in the L2 cache."""
WARP_BYTES = range(2 << 10, (4 << 10) + 1)
BLOCK_BYTES = range(8 << 10, (16 << 10) + 1)
WARPS = range(2, 5)
"""The last of eight warps waits for too long (0.89 of the speed)."""
ACCESS_BITS = 128
CAPABILITY = 90
MOST_ARITHMETIC = 4
"""Operations on what is loaded: with more of them, warps that compute would wait for each other."""
MOVES = ("constant", "program_id", "linear", "rename", "pack", "unpack", "select", "load", "store", "return")


@dataclass(frozen=True)
class Turns:
    """Of a program: its warps, how many of its blocks run at a time, and the grids in which turns are taken."""

    warps: int
    blocks: int
    least_grid: int

    @property
    def take(self) -> str:
        """Assembly: wait until the warp before this one hands on."""
        waits = " ".join(self._where(w, f"barrier.cta.sync {w}, 64;") for w in range(1, self.warps))
        return f"{{ {SELF} {waits} }}"

    @property
    def hand_on(self) -> str:
        """Assembly: let the next warp go on, once operand 0, 32 bits, has been loaded.

        Nothing in PTX waits for a load but a use of what it loads. The rank in the cluster is 0, but the assembler does
        not know that it is.
        """
        use = ".reg .b32 z; mov.u32 z, %cluster_ctarank; and.b32 z, z, $0; add.u32 w, w, z;"
        goes = " ".join(self._where(w, f"barrier.cta.arrive {w + 1}, 64;") for w in range(self.warps - 1))
        return f"{{ {SELF} {use} {goes} }}"

    def _where(self, warp: int, what: str) -> str:
        """An instruction of one warp, where the grid is large enough."""
        return f"setp.eq.u32 p, w, {warp}; setp.ge.and.u32 p, g, {self.least_grid}, p; @p {what}"


SELF = ".reg .pred p; .reg .b32 w, g; mov.u32 w, %tid.x; shr.u32 w, w, 5; mov.u32 g, %nctaid.x;"


def turns_of(program: LaneProgram) -> Turns | None:
    """The turns of a program that copies one tile, large enough to need them; None for any other."""
    if program.warps not in WARPS or program.blocks > 1 or program.shared or program.registers:
        return None
    if program.machine.generation != CAPABILITY:
        return None
    loads = [op for op in program.body.ops if op.name == "load"]
    stores = [op for op in program.body.ops if op.name == "store"]
    if len(loads) != 1 or len(stores) != 1 or not all(map(_is_light, program.body.ops)):
        return None
    load, store = loads[0], stores[0]
    if not all(map(_is_wide, (load, store))) or load.attrs.get("volatile") or load.operands[0].count % 2:
        return None
    computed = list(_after(program.body.ops, load))
    own = load.operands[0].count * ACCESS_BITS // 8 * program.lanes
    block = own * program.warps
    if own not in WARP_BYTES or block not in BLOCK_BYTES or len(computed) > MOST_ARITHMETIC:
        return None
    if store.operands[0].count != load.operands[0].count:
        return None
    return Turns(program.warps, AT_A_TIME // block, CACHED // block)


def _is_light(op: LaneOp) -> bool:
    return op.name in MOVES or op.name.startswith("arith.")


def _is_wide(op: LaneOp) -> bool:
    """Whether an access of global memory takes 16 bytes at a time, in words of 32 bits."""
    elem = op.results[0].elem if op.results else op.operands[1].elem
    bits = ELEMENT_BITS[elem]
    return op.attrs["space"] == "global" and bits <= 32 and bits * op.attrs["vector"] == ACCESS_BITS


def _after(ops: list[LaneOp], load: LaneOp) -> Iterator[LaneOp]:
    """The operations on what a load gives."""
    found = {load.results[0]}
    for op in ops:
        if op.name != "store" and found & set(op.operands):
            found |= set(op.results)
            yield op
