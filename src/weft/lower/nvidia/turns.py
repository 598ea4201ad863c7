"""Two warp groups that begin their products in turn (ping-pong: Shah et al. 2024, FlashAttention-3, section 3.1)."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir.lane import Block, LaneOp, LaneProgram

from ..context import Context
from .table import lowering

_SECOND_GROUP = (0, 0, 1)
"""The warp group by the bits of a warp's number: 1 from the fifth warp on."""


@lowering("ttng.warp_group_turn")
def _turn(c: Context, op: Operation) -> None:
    step = str(op.properties["step"].data)  # type: ignore[attr-defined]
    c.build.instruction(f"turn.{step}", [c.build.linear((0,), warp=_SECOND_GROUP)])


def drop_turns(program: LaneProgram) -> None:
    """Let warp groups go as they like where all warps wait for each other within a turn: there nobody could go on.

    Turns order no accesses; without them a program computes the same.
    """
    found: list[tuple[Block, LaneOp]] = []
    meet = False
    todo = [program.body]
    while todo:
        block = todo.pop()
        within = False
        for op in block.ops:
            todo += op.regions
            isa = str(op.attrs.get("isa", "")) if op.name == "instruction" else ""
            if isa.startswith("turn."):
                found.append((block, op))
                within = isa == "turn.take"
            elif within:
                meet |= any(_is_barrier(x) for x in (op, *(y for region in op.regions for y in region.walk())))
    if meet:
        for block, op in found:
            block.ops.remove(op)


def _is_barrier(op: LaneOp) -> bool:
    return op.name == "barrier" and op.attrs["scope"] != "warp"
