"""The part of the lowering for NVIDIA's GPUs: the copy engine, mbarriers, wgmma, partitions of warps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xdsl.ir import Attribute, Operation

from weft.ir.lane import LaneProgram, Value

from ..behind_loops import compute_behind_loops
from ..context import Context
from ..vendor import VendorLowering
from . import bulk, mbarriers, sent, specialize, tensormaps, turns, warpgroup
from .begun_by_warp import begin_by_warp
from .divisors import bound_divisors
from .exchange import Exchanges, arrive_early, arrive_late
from .fences import insert_fences
from .programs_in_turn import execute_in_turn
from .short_of_registers import hidden, is_short
from .table import LOWERINGS
from .turns import drop_turns

__all__ = ["FAMILIES", "LOWERING"]

FAMILIES = (bulk, mbarriers, sent, specialize, tensormaps, turns, warpgroup)
"""Imported to fill the table."""


class _Lowering(VendorLowering):
    """See `lower/vendor.py`."""

    lowerings = LOWERINGS

    def body(self, c: Context, ops: Sequence[Operation], cap: int) -> None:
        if c.program.blocks > 1:
            c.exchanges = Exchanges(c, ops)
        specialize.lower_body(c, ops, cap)

    def of_blocks(
        self, c: Context, op: Operation, values: Sequence[Value], ranks: Sequence[int]
    ) -> list[list[Value]] | None:
        return c.exchanges.of(c, op, values, ranks) if isinstance(c.exchanges, Exchanges) else None

    def descriptor(self, type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
        return bulk.parameter_of(type)

    def before_barriers(self, program: LaneProgram) -> None:
        insert_fences(program)
        arrive_early(program)
        execute_in_turn(program)  # before barriers: a program must not meet the shared memory of the one before it

    def finished(self, program: LaneProgram) -> None:
        for op in program.body.walk():
            if op.name == "prefetch":
                op.name, op.attrs = "instruction", {"isa": "prefetch.bulk.L2"}
        compute_behind_loops(program, hidden, partial(is_short, program))
        arrive_late(program)
        drop_turns(program)
        bound_divisors(program)
        begin_by_warp(program)


LOWERING = _Lowering()
