"""What a vendor adds to the lowering: operations that only its machines have, and what those need of a whole program.

`lower/nvidia/` is one such addition; `lowering_of(machine)` gives that of a machine's vendor, or one that adds nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from xdsl.ir import Attribute, Operation

from weft.base import Unsupported
from weft.ir.lane import LaneProgram
from weft.machines import Machine, part

Lowering: TypeAlias = Callable[[Any, Operation], None]
"""How an operation is lowered; it is given the `Context`."""


class VendorLowering(Protocol):
    """The vendor's part, which its folder calls `LOWERING`."""

    lowerings: Mapping[str, Lowering]
    """How operations are lowered, by their names."""

    def body(self, c: Any, ops: Sequence[Operation], cap: int) -> None:
        """Lower the operations of a kernel, of which a thread may have `cap` registers, or any number (0)."""

    def descriptor(self, type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
        """(elements, box with the innermost dimension first, swizzle, block) of a parameter that is a descriptor."""

    def before_barriers(self, program: LaneProgram) -> None:
        """Change a program whose buffers have been placed, before barriers are put into it."""


class _Nothing:
    """Of a vendor whose machines have nothing of their own."""

    def __init__(self) -> None:
        self.lowerings: Mapping[str, Lowering] = {}

    def body(self, c: Any, ops: Sequence[Operation], cap: int) -> None:
        c.block(ops)

    def descriptor(self, type: Attribute) -> tuple[str, tuple[int, ...], int, tuple[int, ...]]:
        raise Unsupported("a parameter that is a descriptor with a layout")

    def before_barriers(self, program: LaneProgram) -> None:
        """Nothing."""


_NOTHING = _Nothing()


def lowering_of(machine: Machine) -> VendorLowering:
    """What the vendor of a machine adds."""
    lowering = part("lower", machine)
    adds: VendorLowering = lowering.LOWERING if lowering is not None else _NOTHING
    return adds
