"""The passes for AMD's GPUs: loads ahead, transposed operands; see `passes/vendor.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from weft.base.remarks import RemarkCollector
from weft.ir.tt import DotScaledOp
from weft.layouts import BlockedLayout
from weft.machines import Machine
from weft.targets.instruction import Instruction

from ..vendor import AnyLayout, VendorPasses
from .asked import asked_instructions, note_asked
from .expand_buffers import expand_buffers
from .given_descriptors import take_descriptors_apart
from .load_ahead import load_ahead
from .scalar_bases import scalar_bases
from .scaled_products import complete_scaled_products, scaled_layouts
from .transposed_loads import transposed_load

__all__ = ["PASSES"]


class _Passes(VendorPasses):
    scalar_pointers = True

    def note_asked(self, module: ModuleOp, options: Mapping[str, Any]) -> None:
        note_asked(options, module)

    def asked(
        self, op: Operation, entries: Sequence[Instruction], machine: Machine, chained: bool
    ) -> Sequence[Instruction]:
        return asked_instructions(op, entries, machine, chained)

    def before_layouts(
        self, module: ModuleOp, machine: Machine, warps: int, blocks: int, remarks: RemarkCollector
    ) -> None:
        complete_scaled_products(module)
        scalar_bases(module)

    def scaled_layouts(
        self, op: DotScaledOp, machine: Machine, warps: int, chained: bool = False
    ) -> Sequence[AnyLayout] | None:
        return scaled_layouts(op, machine, warps, chained)

    def access_layout(
        self, op: Operation, layout: BlockedLayout, bits: int, machine: Machine, warps: int
    ) -> BlockedLayout:
        return transposed_load(op, layout, bits, machine, warps)

    def of_author(self, module: ModuleOp, remarks: RemarkCollector) -> None:
        take_descriptors_apart(module)
        expand_buffers(module)

    def of_text(self, module: ModuleOp, remarks: RemarkCollector) -> None:
        expand_buffers(module)

    def load_ahead(self, loop: scf.ForOp, stages: int, machine: Machine, remarks: RemarkCollector) -> bool:
        return load_ahead(loop, stages, machine, remarks)


PASSES = _Passes()
