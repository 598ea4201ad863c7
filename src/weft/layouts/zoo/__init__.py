"""Named layouts: the classes of Gluon, each of which stands for a LinearLayout for every shape of a tile."""

from .amd import AMDMFMALayout, AMDWMMALayout
from .base import AutoLayout, CoalescedLayout, DistributedLayout, Layout, SharedLayout
from .blocked import BlockedLayout, DistributedLinearLayout, SliceLayout
from .cga import make_cga_layout
from .dot import DotOperandLayout, natural_k_width
from .examples import example
from .intel import IntelDPASLayout
from .nvidia import NVMMADistributedLayout
from .scales import mfma_scale_layout, wmma_scale_layout
from .shared import (
    NVMMASharedLayout,
    PaddedSharedLayout,
    PartitionedSharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
    with_gaps,
)
from .tensor_memory import TensorMemoryLayout, TensorMemoryScalesLayout, get_tmem_reg_layout

__all__ = [
    # what they have in common
    "DistributedLayout",
    "Layout",
    "SharedLayout",
    # to be resolved
    "AutoLayout",
    "CoalescedLayout",
    # in registers
    "AMDMFMALayout",
    "AMDWMMALayout",
    "BlockedLayout",
    "DistributedLinearLayout",
    "DotOperandLayout",
    "IntelDPASLayout",
    "NVMMADistributedLayout",
    "SliceLayout",
    # in shared memory
    "NVMMASharedLayout",
    "PaddedSharedLayout",
    "PartitionedSharedLayout",
    "SharedLinearLayout",
    "SwizzledSharedLayout",
    # in tensor memory
    "TensorMemoryLayout",
    "TensorMemoryScalesLayout",
    "get_tmem_reg_layout",
    # parameters of these, and right ones for comparison
    "example",
    "make_cga_layout",
    "mfma_scale_layout",
    "natural_k_width",
    "with_gaps",
    "wmma_scale_layout",
]
