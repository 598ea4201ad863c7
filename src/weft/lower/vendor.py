"""What a vendor adds to the lowering: operations that only its machines have, and passes over whole lane programs.

`lower/nvidia/` is one such addition; `lowering_of(machine)` gives that of a machine's vendor, or one that adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Attribute, Operation

from weft.base import Unsupported
from weft.ir.lane import LaneProgram
from weft.machines import Machine, part

Lowering: TypeAlias = Callable[[Any, Operation], None]
"""How an operation is lowered; it is given the `Context`."""


class VendorLowering:
    """The vendor's part, which its folder calls `LOWERING`: here one that has nothing of its own."""

    lowerings: Mapping[str, Lowering] = {}
    """How operations are lowered, by their names."""

    def body(self, c: Any, ops: Sequence[Operation], cap: int) -> None:
        """Lower the operations of a kernel, of which a thread may have `cap` registers, or any number (0)."""
        c.block(ops)

    def of_blocks(self, c: Any, op: Operation, values: Sequence[Any], ranks: Sequence[int]) -> list[list[Any]] | None:
        """What a reduction has of each block of a cluster, for each of its values, the blocks in the order in which
        `ranks`, a basis, spans them; None where the vendor has no way of its own."""
        return None

    def descriptor(self, type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
        """(elements, box with the innermost dimension first, swizzle, block) of a parameter that is a descriptor."""
        raise Unsupported("a parameter that is a descriptor with a layout")

    def before_barriers(self, program: LaneProgram) -> None:
        """Change a program whose buffers have been placed, before barriers are put into it."""

    def finished(self, program: LaneProgram) -> None:
        """Change a program that is done: write its operations as the machine has them."""


def lowering_of(machine: Machine) -> VendorLowering:
    """What the vendor of a machine adds."""
    lowering = part("lower", machine)
    adds: VendorLowering = lowering.LOWERING if lowering is not None else VendorLowering()
    return adds
