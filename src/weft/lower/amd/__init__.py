"""The part of the lowering for AMD's GPUs: addresses, copies to LDS, exchanges, registers; see `lower/vendor.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation

from weft.ir.lane import Builder, LaneProgram, Value

from ..behind_loops import compute_behind_loops
from ..vendor import VendorLowering
from .addresses import lower_addptr
from .ahead import take_up_behind_barriers
from .copies import lower_copy
from .exchanges import write_exchanges
from .mbarriers import BARRIER_LOWERINGS
from .near_addresses import compute_near_addresses
from .ping_pong import multiply_in_turns
from .scaled import lower_scaled
from .slices import keep_slices
from .tdm import TENSOR_LOWERINGS
from .transposed import lower_local_load
from .unread import load_what_is_read
from .used_up import use_up_before_products
from .widen_in_parts import widen_in_parts

__all__ = ["LOWERING"]


class _Lowering(VendorLowering):
    """See `lower/vendor.py`."""

    lowerings = {
        "tt.addptr": lower_addptr,
        "ttg.async_copy_global_to_local": lower_copy,
        "ttg.local_load": lower_local_load,
        "tt.dot_scaled": lower_scaled,
        **TENSOR_LOWERINGS,
        **BARRIER_LOWERINGS,
    }

    def body(self, c: Any, ops: Sequence[Operation], cap: int) -> None:
        super().body(c, ops, cap)
        widen_in_parts(c.program)

    def finished(self, program: LaneProgram) -> None:
        load_what_is_read(program)
        use_up_before_products(program)
        compute_behind_loops(program, _held)
        compute_near_addresses(program)
        write_exchanges(program)
        keep_slices(program)
        multiply_in_turns(program)
        take_up_behind_barriers(program)


def _held(build: Builder, number: Value) -> Value:
    return build.instruction("held", [number], [("i32", 1)]).result


LOWERING = _Lowering()
