"""A barrier of a part of each block of a cluster: each part arrives at an mbarrier in every block.

The hardware's own (barrier.cluster) is for all threads. Each block has an mbarrier for as many arrivals as there are
blocks. Between two barriers of the part within the block its first threads tell one block each; the first one of them
then tells its own block, and waits until all have done that. What the part has done before is released to the other
blocks, and what those have done is acquired, by these threads for all.

`cluster_barrier.make` is run once by one thread of each block, before a barrier of the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..instruction import Instruction, Operand


def cluster_barrier_instructions() -> Iterator[Instruction]:
    """All entries of this file; the simulator has the barrier as one operation."""
    address, rank = Operand("address", "i32", 1, "r"), Operand("rank", "i32", 1, "r")
    yield Instruction(
        name="cluster_barrier.make",
        since=90,
        text="@<active> mbarrier.init.shared::cta.b64 [<address>], <count>; fence.mbarrier_init.release.cluster;",
        operands=(address, Operand("count", "i32", 1, "n"), Operand("active", "i1", 1, "b")),
        touches="barrier",
        width=8,
        version="8.0",
    )
    tell = "setp.lt.u32 p, <thread>, <blocks>; @p mapa.shared::cluster.u32 a, <address>, <thread>; "
    tell += "setp.ne.and.u32 q, <thread>, <rank>, p; @q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; "
    arrive = "setp.ne.u32 q, <thread>, 0; @q bra DONE; mbarrier.arrive.release.cluster.shared::cta.b64 s, [<address>]; "
    wait = "WAIT: mbarrier.try_wait.acquire.cluster.shared::cta.b64 p, [<address>], s; @!p bra WAIT; "
    yield Instruction(
        name="cluster_barrier.pass",
        since=90,
        text="{ .reg .pred p, q; .reg .b32 a; .reg .b64 s; " + tell + arrive + wait + "DONE: }",
        operands=(address, rank, Operand("thread", "i32", 1, "r"), Operand("blocks", "i32", 1, "n")),
        cost=8,
        touches="barrier",
        width=8,
        version="8.0",
    )
