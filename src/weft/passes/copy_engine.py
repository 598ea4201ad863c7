"""The interface through which `PipelinedLoop` uses hardware that copies tiles into shared memory for a whole block.

For the threads' own copies, each thread gives an address for each 16 bytes. For such hardware, one thread names a block
of a tensor, and the hardware signals when the block has arrived: each slot of the buffers has a barrier for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, tt
from weft.ir.gpu import MemDescType


class CopyEngine(Protocol):
    """Copies of some loads of a loop that hardware does, which one thread of the block begins."""

    @property
    def loads(self) -> Sequence[tt.LoadOp]:
        """The loads; all operands that the products of the loop read in shared memory are among them, if loaded."""

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """What the copies of an iteration are made of."""

    def memory(self, load: tt.LoadOp, count: int = 0) -> MemDescType:
        """The type of a load's buffers, or of one."""

    def tile(self, b: Builder, load: tt.LoadOp, buffer: SSAValue) -> SSAValue:
        """A load's tile in one of its buffers: the buffer, or its transposed view if the tile lies in memory
        transposed."""

    def prepare(self, b: Builder, count: int) -> None:
        """Make what says that an iteration's copies have landed, for so many slots, in front of the loop."""

    def expect(self, b: Builder, slot: SSAValue, exists: SSAValue) -> SSAValue:
        """Say that the copies of an iteration into a slot follow, if it exists; what they are to tell that they have
        landed."""

    def begin(
        self,
        b: Builder,
        landed: SSAValue,
        buffers: Mapping[tt.LoadOp, SSAValue],
        values: Mapping[SSAValue, SSAValue],
        exists: SSAValue,
    ) -> None:
        """Begin some of an iteration's copies into buffers, if it exists; `values` are its values of `inputs`, `landed`
        what `expect` has given."""

    def wait(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Operation:
        """Wait for the copies into a slot, of the last time round."""
