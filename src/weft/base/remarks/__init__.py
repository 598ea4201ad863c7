"""What the compiler decided about a kernel, and why (see `remark`)."""

from .barriers import Barrier
from .layouts import LayoutChanged, LayoutChosen, LayoutKept
from .loops import NotPipelined, Pipelined
from .memory import AccessWidth, Conversion, Gathered, RowAligned, SharedAccess, SharedBuffer
from .nests import InMemory, LoopNest, NotFused, RegisterBlock, VectorAccess
from .others import (
    FewBlocks,
    InParts,
    LoadsSpread,
    OperandInMemory,
    ProductsJoined,
    ProductSplit,
    Rewritten,
    StoredOnce,
    SumInParts,
)
from .products import InstructionDeclined, ProductBy
from .remark import KINDS, NO_REMARKS, Alternative, Copy, Remark, RemarkCollector, Remarks, Site, Wish

__all__ = [
    # what every remark has, and all of a kernel
    "Remark",
    "Remarks",
    "Site",
    "Alternative",
    "Wish",
    "Copy",
    "KINDS",
    # leaving them
    "RemarkCollector",
    "NO_REMARKS",
    # layouts
    "LayoutChosen",
    "LayoutChanged",
    "LayoutKept",
    # memory
    "AccessWidth",
    "RowAligned",
    "Conversion",
    "Gathered",
    "SharedAccess",
    "SharedBuffer",
    # products
    "ProductBy",
    "InstructionDeclined",
    # loops
    "Pipelined",
    "NotPipelined",
    # the CPU
    "LoopNest",
    "VectorAccess",
    "InMemory",
    "NotFused",
    "RegisterBlock",
    # what is done otherwise than it is written
    "Rewritten",
    "SumInParts",
    "OperandInMemory",
    "StoredOnce",
    "ProductsJoined",
    "ProductSplit",
    "LoadsSpread",
    "InParts",
    "FewBlocks",
    # order
    "Barrier",
]
