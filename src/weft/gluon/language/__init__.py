"""`gl`: the language of Gluon kernels.

    import weft.gluon.language as gl

What is as in the Triton language is that very object; the names below are those of Triton's Gluon 3.6.0.
"""

from weft.base import publish as _publish
from weft.language.aggregates import aggregate as aggregate
from weft.language.builtins import *
from weft.language.builtins.shapes import to_tensor as to_tensor
from weft.language.math import *
from weft.language.protocol import base_type as base_type
from weft.language.protocol import base_value as base_value
from weft.language.standard import cdiv as cdiv
from weft.language.standard import max as max
from weft.language.standard import min as min
from weft.language.standard import ravel as ravel
from weft.language.standard import reduce_or as reduce_or
from weft.language.standard import sum as sum
from weft.language.standard import xor_sum as xor_sum
from weft.language.tuples import tuple_type as tuple_type

from ..memory import shared_memory_descriptor as shared_memory_descriptor
from ..types import distributed_type as distributed_type
from ..types import shared_memory_descriptor_type as shared_memory_descriptor_type
from . import amd as amd
from . import extra as extra
from . import fpsan as fpsan
from . import intel as intel
from . import nvidia as nvidia
from .core import *
from .layouts import AutoLayout as AutoLayout
from .layouts import BlockedLayout as BlockedLayout
from .layouts import CoalescedLayout as CoalescedLayout
from .layouts import DistributedLayout as DistributedLayout
from .layouts import DistributedLinearLayout as DistributedLinearLayout
from .layouts import DotOperandLayout as DotOperandLayout
from .layouts import NVMMADistributedLayout as NVMMADistributedLayout
from .layouts import NVMMASharedLayout as NVMMASharedLayout
from .layouts import PaddedSharedLayout as PaddedSharedLayout
from .layouts import SharedLayout as SharedLayout
from .layouts import SharedLinearLayout as SharedLinearLayout
from .layouts import SliceLayout as SliceLayout
from .layouts import SwizzledSharedLayout as SwizzledSharedLayout

_publish(globals(), modules="amd extra fpsan intel nvidia")

# Names that user code reaches for and that `from weft.gluon.language import *` leaves out.
from weft.language.aggregates import aggregate_replace as aggregate_replace
from weft.language.core import _unwrap_if_constexpr as _unwrap_if_constexpr
from weft.language.standard import cumprod as cumprod
from weft.language.standard import cumsum as cumsum
from weft.language.standard import squeeze as squeeze
from weft.language.standard import unsqueeze as unsqueeze

from . import _core as _core
from . import _math as _math
from . import _standard as _standard
from . import layouts as _layouts  # noqa: F401
