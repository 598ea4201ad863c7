"""What only NVIDIA's GPUs have, lowered: the copy engine, mbarriers, products of warp groups, partitions of warps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation

from weft.ir.lane import LaneProgram

from ..context import Context
from ..vendor import VendorLowering
from . import bulk, mbarriers, sent, specialize, tensormaps, turns, warpgroup
from .fences import insert_fences
from .table import LOWERINGS
from .turns import drop_turns

__all__ = ["FAMILIES", "LOWERING"]

FAMILIES = (bulk, mbarriers, sent, specialize, tensormaps, turns, warpgroup)
"""Imported to fill the table."""


class _Lowering(VendorLowering):
    """See `lower/vendor.py`."""

    lowerings = LOWERINGS

    def body(self, c: Context, ops: Sequence[Operation], cap: int) -> None:
        specialize.lower_body(c, ops, cap)

    def descriptor(self, type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
        return bulk.parameter_of(type)

    def before_barriers(self, program: LaneProgram) -> None:
        insert_fences(program)

    def finished(self, program: LaneProgram) -> None:
        drop_turns(program)


LOWERING = _Lowering()
