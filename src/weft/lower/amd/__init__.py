"""What a lane program becomes for AMD's GPUs: exchanges between lanes by the instructions that there are for them."""

from __future__ import annotations

from weft.ir.lane import LaneProgram

from ..vendor import VendorLowering
from .addresses import LOWERINGS
from .ahead import take_up_behind_barriers
from .exchanges import write_exchanges

__all__ = ["LOWERING"]


class _Lowering(VendorLowering):
    """See `lower/vendor.py`."""

    lowerings = LOWERINGS

    def finished(self, program: LaneProgram) -> None:
        write_exchanges(program)
        take_up_behind_barriers(program)


LOWERING = _Lowering()
