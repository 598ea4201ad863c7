"""Barriers in gfx1250's local memory: a word of 64 bits, phase after phase.

    bits 0 to 28     how many more arrivals than one the phase still needs
    bits 29 to 31    the phase, of which bit 29 is its parity
    bits 32 to 47    what bits 0 to 28 begin each phase with

An arrival subtracts from the whole lower half. When bits 0 to 28 are taken below 0, which also changes the phase by
one, they begin anew. Every lane of an instruction arrives for itself; a copy of a tile arrives once for its wave.

    ds_atomic_barrier_arrive_rtn_b64     the word as it was; behind the wave's earlier accesses of local memory
    ds_atomic_async_barrier_arrive_b64   once the lane's copies to local memory that were begun before are done
    ds_barrier.init, ds_barrier.wait     a store of the word, and loads of it until the phase has another parity

By AMD's guide to the instructions of CDNA 5, and as Triton 3.6.0 writes them; there was no processor to confirm it. The
guide lets a processor count in another number of bits; Triton takes it for 29.

>>> hex(made(128)), hex(made(1))
('0x7f0000007f', '0x0')
"""

from __future__ import annotations

from collections.abc import Iterator

from ..instruction import Effects, Instruction, Operand, Reach
from .products import GFX1250

ARRIVE, COPIES_ARRIVE = "ds_atomic_barrier_arrive_rtn_b64", "ds_atomic_async_barrier_arrive_b64"
INIT, WAIT = "ds_barrier.init", "ds_barrier.wait"
PARITY = 29
"""The bit of the phase's parity."""
MOST = 1 << 16
"""The most arrivals of a phase: bits 32 to 47 have one less."""


def made(count: int) -> int:
    """The word of a barrier of which a phase needs so many arrivals."""
    return (count - 1) << 32 | (count - 1)


def mbarrier_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    address, local = Operand("address", "i32", 1, "r"), ("ptr addrspace(3)", "address")

    def entry(name: str, text: str, *operands: Operand, **more: object) -> Instruction:
        params = {"arguments": (local, *((f"{o.elem}", o.name) for o in operands)), "returns": (), **more}
        results = (Operand("d", "i64", 1, "l"),) if params["returns"] else ()
        return Instruction(
            name, GFX1250, text, (address, *operands), results, cost=4, touches="barrier", width=8, params=params
        )

    yield entry(INIT, "", Operand("word", "i64", 1, "l"))
    yield entry(WAIT, "", Operand("parity", "i32", 1, "r"))
    yield entry(
        ARRIVE, "llvm.amdgcn.ds.atomic.barrier.arrive.rtn.b64", Operand("count", "i64", 1, "l"), returns="i64"
    )
    yield entry(COPIES_ARRIVE, "llvm.amdgcn.ds.atomic.async.barrier.arrive.b64")


def on_mbarrier(entry: Instruction) -> Effects:
    """What others have to be ordered with: the making of a barrier, not who arrives there and waits."""
    if entry.name == INIT:
        return Effects((Reach("address", 8, "write"),), lasting=True)
    return Effects((Reach("address", 8, "atomic"),))
