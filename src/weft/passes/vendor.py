"""What a vendor adds to the passes: products of its matrix units, and copies of its hardware.

`passes/nvidia/` is one such addition: products of warp groups, which read operands in shared memory, and the copy
engine. `passes_of(machine)` gives that of a machine's vendor, or one that adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from weft.base.remarks import RemarkCollector
from weft.ir import tt
from weft.ir.tt import DotScaledOp
from weft.layouts import BlockedLayout, DistributedLayout, LinearLayout, SharedLayout
from weft.machines import Machine, part
from weft.targets.instruction import Instruction

from .copy_engine import CopyEngine

AccessOf: TypeAlias = Callable[[Operation], BlockedLayout | None]
"""The layout by which a load, or a store, accesses memory."""
AnyLayout: TypeAlias = DistributedLayout | LinearLayout


class VendorPasses:
    """The vendor's part, which its folder calls `PASSES`: here one that has nothing of its own."""

    of_memory = ""
    """What remarks call its instruction for products of operands in shared memory."""

    scalar_pointers = False
    """Whether loops carry one pointer for a tile of pointers that all move alike."""

    def note_asked(self, module: ModuleOp, options: Mapping[str, Any]) -> None:
        """Write onto tile IR what options of a launch ask of its products."""

    def asked(
        self, op: Operation, entries: Sequence[Instruction], machine: Machine, chained: bool
    ) -> Sequence[Instruction]:
        """The matrix instructions that the launch asks for, of those that can compute a product."""
        return entries

    def before_layouts(
        self, module: ModuleOp, machine: Machine, warps: int, blocks: int, remarks: RemarkCollector
    ) -> None:
        """Change tile IR that is about to get layouts for so many warps, in clusters of so many blocks."""

    def scaled_layouts(
        self, op: DotScaledOp, machine: Machine, warps: int, chained: bool = False
    ) -> Sequence[AnyLayout] | None:
        """The layouts of a scaled product's operands, in their order, of which the third is that of its result; None
        where it is to be taken apart, as no instruction of the machine does it."""
        return None

    def product_layout(
        self, op: Operation, shape: Sequence[int], machine: Machine, warps: int, access: AccessOf
    ) -> DistributedLayout | str:
        """The layout of the result where a product can be made of that instruction, else why it cannot, in words: none
        for a machine that has no such instruction. `shape` is a block's part."""
        return ""

    def access_layout(
        self, op: Operation, layout: BlockedLayout, bits: int, machine: Machine, warps: int
    ) -> BlockedLayout:
        """The layout by which an operation accesses memory, elements of so many bits, where addresses ask for one."""
        return layout

    def is_result(self, layout: DistributedLayout | LinearLayout) -> bool:
        """Whether a layout is that of such a product's result."""
        return False

    def left_in_registers(self, op: Operation, result: DistributedLayout) -> DistributedLayout | None:
        """The layout of a product's left operand if that has come out of such a product; None where it has to be
        stored."""
        return None

    def forms(self, op: Operation, index: int, division: Any, access: AccessOf) -> Sequence[SharedLayout]:
        """The layouts of shared memory in which operand number `index` of such a product may lie: of those that its
        threads store as well, the first is taken."""
        raise NotImplementedError

    def in_memory(
        self, op: Operation, tile: SSAValue, index: int, division: Any, machine: Machine, access: AccessOf
    ) -> SSAValue:
        """An operand of such a product, number `index`, stored to shared memory before it; `tile` is it in a layout of
        its own, and `division` how the blocks of a cluster divide it."""
        raise NotImplementedError

    def product(self, op: Operation, a: SSAValue, b: SSAValue, c: SSAValue) -> SSAValue:
        """The product of such operands, in the place of the one that there was; its result."""
        raise NotImplementedError

    def load_ahead(self, loop: scf.ForOp, stages: int, machine: Machine, remarks: RemarkCollector) -> bool:
        """Begin loads of an innermost loop ahead in a way that is the vendor's own, instead of by asynchronous copies;
        whether these need not be tried."""
        return False

    def tell_whole(self, loop: Operation, why: str, machine: Machine, remarks: RemarkCollector) -> None:
        """Say of a loop, which none of these ways is for, why it is not."""

    def copy_engine(
        self, loop: scf.ForOp, copied: Sequence[tt.LoadOp], count: int, machine: Machine
    ) -> CopyEngine | None:
        """What does some of the copies in the place of threads that a loop begins ahead, into `count` buffers of each
        tile or one less; None where the threads are to do all."""
        return None

    def after_layouts(self, module: ModuleOp, machine: Machine, stages: int, remarks: RemarkCollector) -> None:
        """Change layout IR that the compiler has just made; loops have so many iterations under way."""

    def after_copies(self, module: ModuleOp, machine: Machine, remarks: RemarkCollector) -> None:
        """Change layout IR in which it is known what is copied ahead."""

    def of_author(self, module: ModuleOp, remarks: RemarkCollector) -> None:
        """Change layout IR of a Gluon kernel, whose layouts are known: descriptors that it makes, fences it needs."""

    def of_text(self, module: ModuleOp, remarks: RemarkCollector) -> None:
        """Change layout IR that was given as text."""


def passes_of(machine: Machine) -> VendorPasses:
    """What the vendor of a machine adds."""
    passes = part("passes", machine)
    adds: VendorPasses = passes.PASSES if passes is not None else VendorPasses()
    return adds
