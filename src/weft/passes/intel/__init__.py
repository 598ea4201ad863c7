"""The passes for Intel's GPUs: 2D blocks of memory, and operands of products without these; see `passes/vendor.py`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from weft.base.remarks import RemarkCollector
from weft.machines import Machine

from ..vendor import VendorPasses
from .block_access import access_by_blocks
from .operand_rows import hold_rows

__all__ = ["PASSES"]


class _Passes(VendorPasses):
    def after_layouts(self, module: ModuleOp, machine: Machine, stages: int, remarks: RemarkCollector) -> None:
        access_by_blocks(module, machine, stages, remarks)
        hold_rows(module)


PASSES = _Passes()
