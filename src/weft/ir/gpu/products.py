"""Products that read operands in shared memory, as passes see them: a vendor's operations are made from these classes.

for op in shared_products(loop.body.block):
    op.begin()                                  it goes on by itself
    op.wait(builder, [op.d], 1)                 what waits for it, and may leave one more under way
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Block, Operation, SSAValue

from weft.ir import Builder, walk

from ..effects import ReadWriteOp


class OperandFenceOp(ReadWriteOp):
    """What was written to shared memory before it is seen by products and copies that do not go through threads."""


class SharedProductOp(ReadWriteOp):
    """c + a * b = d, of which `b`, and maybe `a`, is in shared memory."""

    if TYPE_CHECKING:  # fields of those who derive from it
        a: SSAValue
        b: SSAValue
        c: SSAValue
        d: SSAValue

    def begin(self) -> None:
        """Only begin it: who uses its result waits before."""
        raise NotImplementedError

    @staticmethod
    def wait(b: Builder, values: Sequence[SSAValue], pending: int) -> Operation:
        """Wait for all such products but the last `pending`; the values are valid as its results."""
        raise NotImplementedError

    @staticmethod
    def fence(b: Builder) -> Operation:
        """An `OperandFenceOp`, for operands that threads of the block wrote."""
        raise NotImplementedError


def shared_products(block: Block) -> list[SharedProductOp]:
    """Those of a block and of the regions in it."""
    return [op for op in walk(block) if isinstance(op, SharedProductOp)]
