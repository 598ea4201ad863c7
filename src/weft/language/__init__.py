"""What `tl.*` means: types, values, and functions that build tile IR.

    import weft.language as tl

    @weft.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

Names and meanings are those of `triton.language` 3.6.0; `docs/reference/semantics.md` says what happens in every
corner.

>>> evaluate("tl.sum(x, axis=0) * tl.arange(0, 4)", x=[1, 2, 3, 4])
array([ 0, 10, 20, 30], dtype=int32)
"""

from typing import TYPE_CHECKING

from weft.base import publish as _publish
from weft.ir import PropagateNan as PropagateNan

from . import extra as extra, math as math, target_info as target_info
from .builtins import *
from .builtins.control import condition as condition
from .builtins.tl_only import *
from .dtypes import TRITON_MAX_TENSOR_NUMEL as TRITON_MAX_TENSOR_NUMEL, pi32_t as pi32_t
from .math import *
from .random import *
from .standard import *
from .tuples import slice as slice

if TYPE_CHECKING:  # what annotations name is anything to them
    from .annotations import const as const, tensor_descriptor as tensor_descriptor
else:
    from .descriptors import tensor_descriptor as tensor_descriptor
    from .dtypes import const as const

_publish(globals(), modules="extra math target_info")

# Names that user code reaches for and that `from weft.language import *` leaves out, as in Triton.
from weft.base import lazy_face

from . import core as core, random as random, standard as standard
from .aggregates import aggregate_replace as aggregate_replace
from .builtins.shapes import to_tensor as to_tensor
from .core import _aggregate as _aggregate
from .descriptors import tensor_descriptor_type as tensor_descriptor_type
from .protocol import base_type as base_type, base_value as base_value
from .results import must_use_result as must_use_result
from .signatures import str_to_ty as str_to_ty
from .standard import squeeze as squeeze, unsqueeze as unsqueeze
from .tuples import tuple_type as tuple_type

if TYPE_CHECKING:
    from . import semantic as semantic

__getattr__ = lazy_face(__name__, {}, {"semantic": f"{__name__}.semantic"})  # it builds IR, so it comes with xDSL
