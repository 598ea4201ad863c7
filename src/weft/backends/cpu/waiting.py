"""Which kernels have programs that may wait for others (`watch` has what a launch of them needs)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.backends.cpu.program import Block, Op
from weft.base import each_once

_READS = frozenset({"tt.load", "tt.atomic_load", "tt.atomic_rmw", "tt.atomic_cas"})


def may_wait(blocks: Sequence[Block]) -> bool:
    """Whether some `while` goes on for as long as something that it reads itself says so."""
    return any(
        (op.name == "scf.while" and reads_its_condition(op)) or any(may_wait(region) for region in op.regions)
        for block in blocks
        for op in block.ops
    )


def reads_its_condition(loop: Op) -> bool:
    """Whether the condition of a `while` depends on memory that is read inside of it."""
    before, after = loop.regions[0][0], loop.regions[1][0]
    inside = _blocks_in(loop)
    left = [before.ops[-1].args[0]]
    for value in each_once(left):
        if value.block not in inside:
            continue
        if value.op is None:  # what is carried: from one iteration to the next, or into a part of the loop
            ends = after.ops[-1].args if value.block is before else before.ops[-1].args
            left += ends if value.block in (before, after) else value.block.ops[-1].args
            continue
        if value.op.name in _READS:
            return True
        left += value.op.args
        for region in value.op.regions:
            for block in region:
                left += block.ops[-1].args
    return False


def _blocks_in(op: Op) -> set[Block]:
    """The blocks inside of an operation, at any depth."""
    return {
        b for region in op.regions for block in region for b in (block, *(x for o in block.ops for x in _blocks_in(o)))
    }
