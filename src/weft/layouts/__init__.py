"""Layouts as linear maps over F2: the algebra, usable alone by anyone who thinks about layouts.

>>> from weft.layouts import LinearLayout
>>> rows = LinearLayout.identity_1d(4, "register", "dim1") * LinearLayout.identity_1d(8, "lane", "dim0")
>>> rows.apply(register=3, lane=5)
{'dim1': 3, 'dim0': 5}
"""

from weft.base import LayoutError

from .affine import AffineLayout
from .conflicts import bank_conflicts, count_wavefronts, shared_access, wavefronts
from .corners import sketch, sketch_memory
from .cute import CuteLayout, CuteSwizzle, from_cute, to_cute
from .describe import describe, descriptions
from .infer import (
    broadcast_result,
    broadcast_source,
    expand_dims_result,
    expand_dims_source,
    fp4_to_fp_result,
    fp4_to_fp_source,
    gather_index,
    gather_result,
    gather_source,
    join_result,
    join_source,
    reduce_result,
    reduce_source,
    reshape_result,
    reshape_source,
    split_result,
    split_source,
    trans_result,
    trans_source,
)
from .linear import LinearLayout
from .pictures import install
from .plan import (
    Cost,
    Gather,
    LocalAccess,
    Machine,
    Plan,
    Reduction,
    machine_of,
    plan_conversion,
    plan_gather,
    plan_local_access,
    plan_reduction,
    vector_width,
)
from .zoo import (
    AMDMFMALayout,
    AMDWMMALayout,
    AutoLayout,
    BlockedLayout,
    CoalescedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    IntelDPASLayout,
    Layout,
    NVMMADistributedLayout,
    NVMMASharedLayout,
    PaddedSharedLayout,
    PartitionedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SliceLayout,
    SwizzledSharedLayout,
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    example,
    get_tmem_reg_layout,
    make_cga_layout,
    mfma_scale_layout,
    natural_k_width,
    with_gaps,
    wmma_scale_layout,
)

__all__ = [
    # the algebra
    "AffineLayout",
    "LinearLayout",
    "LayoutError",
    # named layouts: what they have in common, and those to be resolved
    "AutoLayout",
    "CoalescedLayout",
    "DistributedLayout",
    "Layout",
    "SharedLayout",
    # named layouts in registers
    "AMDMFMALayout",
    "AMDWMMALayout",
    "BlockedLayout",
    "DistributedLinearLayout",
    "DotOperandLayout",
    "IntelDPASLayout",
    "NVMMADistributedLayout",
    "SliceLayout",
    # named layouts in shared memory
    "NVMMASharedLayout",
    "PaddedSharedLayout",
    "PartitionedSharedLayout",
    "SharedLinearLayout",
    "SwizzledSharedLayout",
    # named layouts in tensor memory
    "TensorMemoryLayout",
    "TensorMemoryScalesLayout",
    "get_tmem_reg_layout",
    # what shape operations make of a layout, and the other way round
    "broadcast_result",
    "broadcast_source",
    "expand_dims_result",
    "expand_dims_source",
    "fp4_to_fp_result",
    "fp4_to_fp_source",
    "gather_index",
    "gather_result",
    "gather_source",
    "join_result",
    "join_source",
    "reduce_result",
    "reduce_source",
    "reshape_result",
    "reshape_source",
    "split_result",
    "split_source",
    "trans_result",
    "trans_source",
    # bank conflicts
    "bank_conflicts",
    "count_wavefronts",
    "shared_access",
    "wavefronts",
    # the names of a layout
    "describe",
    "descriptions",
    # corners of layouts as text
    "sketch",
    "sketch_memory",
    # how tiles move, and what that costs
    "Cost",
    "Gather",
    "LocalAccess",
    "Machine",
    "Plan",
    "Reduction",
    "machine_of",
    "plan_conversion",
    "plan_gather",
    "plan_local_access",
    "plan_reduction",
    "vector_width",
    # CuTe's notation
    "CuteLayout",
    "CuteSwizzle",
    "from_cute",
    "to_cute",
    # parameters of named layouts
    "example",
    "make_cga_layout",
    "mfma_scale_layout",
    "natural_k_width",
    "with_gaps",
    "wmma_scale_layout",
]

install(LinearLayout, AffineLayout, Layout)
