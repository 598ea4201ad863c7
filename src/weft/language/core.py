"""Everything that the language is made of, under the names that user code knows: those of `triton.language.core`.

Types and values: `dtype`, `block_type`, `pointer_type`, `tensor`, `constexpr`, `tuple`, `tensor_descriptor`, ...
Builtins: `load`, `store`, `arange`, `dot`, `reduce`, ... The library built on them is in `standard`, `math`, `random`.
"""

from weft.base import publish as _publish
from weft.ir import PropagateNan as PropagateNan

from .aggregates import aggregate_replace as aggregate_replace
from .builtins import *
from .builtins.arithmetic import builtin_max as builtin_max, builtin_min as builtin_min
from .builtins.control import condition as condition
from .builtins.external import (
    binary_op_type_legalization as binary_op_type_legalization,
    dispatch as dispatch,
    extern as extern,
    extern_elementwise as extern_elementwise,
)
from .builtins.internals import *
from .builtins.shapes import item as item, to_tensor as to_tensor
from .builtins.tl_only import *
from .constants import CONSTEXPR_0 as CONSTEXPR_0
from .descriptors import (
    tensor_descriptor as tensor_descriptor,
    tensor_descriptor_base as tensor_descriptor_base,
    tensor_descriptor_base_type as tensor_descriptor_base_type,
    tensor_descriptor_type as tensor_descriptor_type,
)
from .dtypes import (
    TRITON_MAX_TENSOR_NUMEL as TRITON_MAX_TENSOR_NUMEL,
    const as const,
    get_int_dtype as get_int_dtype,
    pi32_t as pi32_t,
    slice_type as slice_type,
)
from .protocol import (
    TRITON_BUILTIN as TRITON_BUILTIN,
    base_type as base_type,
    base_value as base_value,
    builtin as builtin,
    is_builtin as is_builtin,
)
from .results import must_use_result as must_use_result
from .tensors import check_bit_width as check_bit_width
from .tuples import slice as slice, tuple_type as tuple_type

_publish(globals(), internal=True)
