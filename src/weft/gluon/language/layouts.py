"""The layout classes of `gl`: those of `weft.layouts`, made in kernels from values known when compiling."""

from __future__ import annotations

from typing import Any

from weft.layouts import (
    AMDMFMALayout,
    AMDWMMALayout,
    AutoLayout,
    BlockedLayout,
    CoalescedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
)

__all__ = [
    "AMDMFMALayout",
    "AMDWMMALayout",
    "AutoLayout",
    "BlockedLayout",
    "CoalescedLayout",
    "DistributedLayout",
    "DistributedLinearLayout",
    "DotOperandLayout",
    "MBarrierLayout",
    "NVMMADistributedLayout",
    "NVMMASharedLayout",
    "PaddedSharedLayout",
    "SharedLayout",
    "SharedLinearLayout",
    "SliceLayout",
    "SwizzledSharedLayout",
    "TensorMemoryLayout",
    "TensorMemoryScalesLayout",
    "takes_plain_values",
]


def takes_plain_values(function: Any) -> Any:
    """Mark a class or a function of the host that, called in a kernel, is to get Python's values."""
    function.__takes_plain_values__ = True
    return function


def MBarrierLayout(cga_layout: Any = None) -> SwizzledSharedLayout:
    """The layout of an mbarrier: one word of shared memory."""
    return SwizzledSharedLayout(1, 1, 1, [0], cga_layout or ())


for _callable in (
    AMDMFMALayout,
    AMDWMMALayout,
    AutoLayout,
    BlockedLayout,
    CoalescedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    NVMMASharedLayout.get_default_for,
    PaddedSharedLayout,
    PaddedSharedLayout.with_identity_for,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    MBarrierLayout,
):
    takes_plain_values(_callable)
