"""What the compiler decided about a kernel, and why (see `remark`)."""

from .memory import AccessWidth, Conversion, SharedBuffer
from .remark import KINDS, NO_REMARKS, Alternative, Remark, RemarkCollector, Remarks, Site

__all__ = [
    # what every remark has, and all of a kernel
    "Remark",
    "Remarks",
    "Site",
    "Alternative",
    "KINDS",
    # leaving them
    "RemarkCollector",
    "NO_REMARKS",
    # memory
    "AccessWidth",
    "Conversion",
    "SharedBuffer",
]
