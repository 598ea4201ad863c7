"""Two warp groups that take turns let go of them where they would wait for each other for ever."""

from __future__ import annotations

import pytest

from weft.ir.lane import Block, Builder, LaneProgram
from weft.lower.nvidia.turns import drop_turns
from weft.machines import machine_of


@pytest.mark.parametrize("scope, left", [("warp", 2), ("block", 0)])
def test_no_turn_has_a_barrier_of_all_warps_in_it(scope: str, left: int) -> None:
    build = Builder(Block())
    group = build.linear((0,), warp=(0, 0, 1))
    for step in ("turn.take", "turn.pass"):
        build.instruction(step, [group])
        build.barrier(scope)
    program = LaneProgram("kernel", machine_of("cuda:90"), (), build.block, 8)
    drop_turns(program)
    assert sum(op.name == "instruction" for op in program.body.ops) == left
