"""What an operation does to memory: the classes that operations of our dialects are made from.

    @irdl_op_definition
    class SplatOp(PureOp):
        name = "tt.splat"
        ...

Whatever waits, or may not change places with accesses to memory, reads and writes.
"""

from xdsl.irdl import IRDLOperation, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure


class PureOp(IRDLOperation):
    """Neither reads nor writes memory: it may be moved, merged and left out."""

    traits = traits_def(Pure())


class ReadOp(IRDLOperation):
    """Reads memory."""

    traits = traits_def(MemoryReadEffect())


class WriteOp(IRDLOperation):
    """Writes memory."""

    traits = traits_def(MemoryWriteEffect())


class ReadWriteOp(IRDLOperation):
    """Reads and writes memory, or waits: it keeps its place among accesses."""

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
