"""The passes for NVIDIA's GPUs: products by wgmma, and the copy engine; see `passes/vendor.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from weft.base.remarks import NotSpecialized, RemarkCollector
from weft.ir import bit_width, element_of, span_of, tt, unit_attr, walk
from weft.layouts import DistributedLayout, DotOperandLayout, LinearLayout, NVMMADistributedLayout, SharedLayout
from weft.machines import Machine

from ..vendor import AccessOf, VendorPasses
from .bulk_copies import BulkCopies, bulk_copies
from .bulk_loads import MADE_TENSORS, NOT_MADE
from .chosen_extremes import name_extremes
from .create_tensormaps import create_tensormaps
from .divide_results import divide_results
from .fence_copies import fence_copies, tell_fences
from .fence_reads import fence_reads
from .given_descriptors import take_apart
from .join_products import join_products
from .narrow_extremes import narrow_extremes
from .share_stored import share_stored
from .specialize_warps import specialize_warps
from .specialized_loops import has_own_products
from .start_from_zero import start_from_zero
from .tiles_ahead import load_tiles_ahead
from .warpgroup_products import (
    OF_GROUPS,
    allocated,
    has_groups,
    left_is_made_anew,
    operand_forms,
    warpgroup_layout,
    warpgroup_product,
)

__all__ = ["PASSES"]

COMPARES_HALVES = 80
"""The first generation that finds the larger of two halves, also of two pairs at once."""


class _Passes(VendorPasses):
    of_memory = OF_GROUPS

    def note_asked(self, module: ModuleOp, options: Mapping[str, Any]) -> None:
        if options.get(MADE_TENSORS) is False:
            module.attributes[NOT_MADE] = unit_attr()

    def before_layouts(
        self, module: ModuleOp, machine: Machine, warps: int, blocks: int, remarks: RemarkCollector
    ) -> None:
        if blocks == 1:
            divide_results(module, machine, warps, remarks)
        if machine.generation >= COMPARES_HALVES:
            name_extremes(module)
            narrow_extremes(module)

    def product_layout(
        self, op: Operation, shape: Sequence[int], machine: Machine, warps: int, access: AccessOf
    ) -> DistributedLayout | str:
        return warpgroup_layout(op, shape, machine, warps, access)

    def is_result(self, layout: DistributedLayout | LinearLayout) -> bool:
        return isinstance(layout, NVMMADistributedLayout) and layout.version[0] == 3

    def left_in_registers(self, op: Operation, result: DistributedLayout) -> DistributedLayout | None:
        bits = bit_width(element_of(op.operands[0].type))
        return DotOperandLayout(0, result, 32 // bits) if bits in (8, 16) and left_is_made_anew(op) else None

    def forms(self, op: Operation, index: int, division: Any, access: AccessOf) -> Sequence[SharedLayout]:
        return operand_forms(op, index, division, access)

    def in_memory(
        self, op: Operation, tile: SSAValue, index: int, division: Any, machine: Machine, access: AccessOf
    ) -> SSAValue:
        return allocated(op, tile, index, division, machine, access)

    def product(self, op: Operation, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        return warpgroup_product(op, a, b, c)

    def load_ahead(self, loop: scf.ForOp, stages: int, machine: Machine, remarks: RemarkCollector) -> bool:
        return specialize_warps(loop, stages, machine, remarks) is None

    def tell_whole(self, loop: Operation, why: str, machine: Machine, remarks: RemarkCollector) -> None:
        if has_groups(machine) and has_own_products(loop):
            remarks.add(NotSpecialized(span_of(loop), why))

    def copy_engine(
        self, loop: scf.ForOp, copied: Sequence[tt.LoadOp], count: int, machine: Machine
    ) -> BulkCopies | None:
        return bulk_copies(loop, copied, count, machine)

    def after_layouts(self, module: ModuleOp, machine: Machine, stages: int, remarks: RemarkCollector) -> None:
        start_from_zero(module)

    def after_copies(self, module: ModuleOp, machine: Machine, remarks: RemarkCollector) -> None:
        share_stored(module, machine, remarks)
        if join_products(module, machine, remarks):  # after it: a store that is gone has nothing to be fenced for
            tell_fences(walk(module), remarks)
        load_tiles_ahead(module, machine, remarks)

    def of_author(self, module: ModuleOp, remarks: RemarkCollector) -> None:
        take_apart(module)
        create_tensormaps(module)
        fence_reads(module, remarks)

    def of_text(self, module: ModuleOp, remarks: RemarkCollector) -> None:
        fence_copies(module, remarks)


PASSES = _Passes()
