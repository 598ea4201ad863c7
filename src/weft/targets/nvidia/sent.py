"""st.async: words that a thread sends to the shared memory of a block of its cluster, counted at an mbarrier there.

The instruction is done at once for the thread; the words are there, and as many bytes are counted, some time later.
A thread that has seen the phase of the mbarrier end sees them. Address and mbarrier are addresses of the cluster
(`mapa`), both in one block's memory. The words are written as they are; when they arrive is the simulator's to choose.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..instruction import Instruction, Operand


def sending_instructions() -> Iterator[Instruction]:
    """All entries of this file."""
    address, active = Operand("to", "i32", 1, "r"), Operand("active", "i1", 1, "b")
    barrier = Operand("barrier", "i32", 1, "r")
    for words in (1, 2, 4):
        vector = f".v{words}" if words > 1 else ""
        kind = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
        yield Instruction(
            name=f"st.async{vector}.b32",
            since=90,
            text=f"@<active> {kind}{vector}.b32 [<to>], <words>, [<barrier>];",
            operands=(address, Operand("words", "i32", words, "r"), barrier, active),
            cost=2,
            touches="bulk",
            width=4 * words,
            stores=True,
            version="8.1",
            params={"words": words},
        )
