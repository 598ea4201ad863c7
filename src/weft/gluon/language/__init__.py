"""`gl`: the language of Gluon kernels.

    import weft.gluon.language as gl

What is as in the Triton language is that very object; the names below are those of Triton's Gluon 3.6.0.
"""

from weft.base import publish as _publish
from weft.language.aggregates import aggregate as aggregate
from weft.language.builtins import *
from weft.language.builtins.shapes import to_tensor as to_tensor
from weft.language.math import *
from weft.language.protocol import base_type as base_type, base_value as base_value
from weft.language.standard import (
    cdiv as cdiv,
    max as max,
    min as min,
    ravel as ravel,
    reduce_or as reduce_or,
    sum as sum,
    xor_sum as xor_sum,
)
from weft.language.tuples import tuple_type as tuple_type

from ..memory import shared_memory_descriptor as shared_memory_descriptor
from ..types import distributed_type as distributed_type, shared_memory_descriptor_type as shared_memory_descriptor_type
from . import amd as amd, extra as extra, fpsan as fpsan, intel as intel, nvidia as nvidia
from .core import *
from .layouts import (
    AutoLayout as AutoLayout,
    BlockedLayout as BlockedLayout,
    CoalescedLayout as CoalescedLayout,
    DistributedLayout as DistributedLayout,
    DistributedLinearLayout as DistributedLinearLayout,
    DotOperandLayout as DotOperandLayout,
    NVMMADistributedLayout as NVMMADistributedLayout,
    NVMMASharedLayout as NVMMASharedLayout,
    PaddedSharedLayout as PaddedSharedLayout,
    SharedLayout as SharedLayout,
    SharedLinearLayout as SharedLinearLayout,
    SliceLayout as SliceLayout,
    SwizzledSharedLayout as SwizzledSharedLayout,
)

_publish(globals(), modules="amd extra fpsan intel nvidia")

# Names that user code reaches for and that `from weft.gluon.language import *` leaves out.
from weft.language.aggregates import aggregate_replace as aggregate_replace
from weft.language.core import _unwrap_if_constexpr as _unwrap_if_constexpr
from weft.language.standard import cumprod as cumprod, cumsum as cumsum, squeeze as squeeze, unsqueeze as unsqueeze

from . import (
    _core as _core,
    _math as _math,
    _standard as _standard,
    layouts as _layouts,  # noqa: F401
)
