"""What the compiler decided about a kernel, and why (see `remark`)."""

from .barriers import Barrier
from .layouts import LayoutChanged, LayoutChosen, LayoutKept
from .memory import AccessWidth, Conversion, SharedBuffer
from .remark import KINDS, NO_REMARKS, Alternative, Remark, RemarkCollector, Remarks, Site, Wish

__all__ = [
    # what every remark has, and all of a kernel
    "Remark",
    "Remarks",
    "Site",
    "Alternative",
    "Wish",
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
    "Conversion",
    "SharedBuffer",
    # order
    "Barrier",
]
