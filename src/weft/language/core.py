"""Everything that the language is made of, under the names that user code knows.

Types and values: `dtype`, `block_type`, `pointer_type`, `tensor`, `constexpr`, `tuple`, `tensor_descriptor`, ...
Builtins: `load`, `store`, `arange`, `dot`, `reduce`, ... The library built on them is in `standard`, `math`, `random`.
"""

from __future__ import annotations

from .aggregates import aggregate as _aggregate
from .aggregates import aggregate_replace
from .aggregates import aggregate_type as _aggregate_type
from .builtins.arithmetic import (
    PropagateNan,
    add,
    builtin_max,
    builtin_min,
    clamp,
    dot,
    dot_scaled,
    maximum,
    minimum,
    mul,
    sub,
    where,
)
from .builtins.arithmetic import promote_bfloat16_to_float32 as _promote_bfloat16_to_float32
from .builtins.collectives import associative_scan, gather, histogram, map_elementwise, reduce
from .builtins.collectives import reduce_with_indices as _reduce_with_indices
from .builtins.control import (
    assume,
    condition,
    num_programs,
    program_id,
    range,
    static_assert,
    static_print,
    static_range,
)
from .builtins.external import (
    binary_op_type_legalization,
    dispatch,
    extern,
    extern_elementwise,
    inline_asm_elementwise,
)
from .builtins.hints import (
    debug_barrier,
    device_assert,
    device_print,
    expect_zero,
    max_constancy,
    max_contiguous,
    multiple_of,
)
from .builtins.memory import (
    advance,
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_load,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_poll,
    atomic_store,
    atomic_xchg,
    atomic_xor,
    load,
    load_tensor_descriptor,
    make_block_ptr,
    make_tensor_descriptor,
    store,
    store_tensor_descriptor,
)
from .builtins.shapes import (
    arange,
    broadcast,
    broadcast_to,
    cast,
    cat,
    expand_dims,
    full,
    item,
    join,
    permute,
    reshape,
    split,
    to_tensor,
    trans,
    view,
)
from .builtins.shapes import unsplat as _unsplat
from .constants import CONSTEXPR_0, constexpr, constexpr_type
from .constants import unwrap as _unwrap_if_constexpr
from .constants import unwrap_iterable as _unwrap_iterable
from .constants import unwrap_shape as _unwrap_shape
from .constants import wrap_axis as _wrap_axis
from .descriptors import (
    tensor_descriptor,
    tensor_descriptor_base,
    tensor_descriptor_base_type,
    tensor_descriptor_type,
)
from .dtypes import (
    TRITON_MAX_TENSOR_NUMEL,
    bfloat16,
    block_type,
    const,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    get_int_dtype,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    slice_type,
    uint8,
    uint16,
    uint32,
    uint64,
    void,
)
from .protocol import TRITON_BUILTIN, base_type, base_value, builtin, is_builtin
from .results import must_use_result
from .tensors import check_bit_width, tensor
from .tensors import member as _tensor_member_fn
from .tuples import normalize_tuple as _normalize_tuple
from .tuples import slice, tuple, tuple_type
from .tuples import type_for_tuple_values as _type_for_tuple_values

_DtypeClass = dtype

__all__ = [
    # types
    "TRITON_MAX_TENSOR_NUMEL",
    "bfloat16",
    "block_type",
    "const",
    "constexpr_type",
    "dtype",
    "float16",
    "float32",
    "float64",
    "float8e4b15",
    "float8e4b8",
    "float8e4nv",
    "float8e5",
    "float8e5b16",
    "get_int_dtype",
    "int1",
    "int16",
    "int32",
    "int64",
    "int8",
    "pi32_t",
    "pointer_type",
    "slice_type",
    "tuple_type",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "void",
    # values
    "CONSTEXPR_0",
    "base_type",
    "base_value",
    "constexpr",
    "slice",
    "tensor",
    "tensor_descriptor",
    "tensor_descriptor_base",
    "tensor_descriptor_base_type",
    "tensor_descriptor_type",
    "tuple",
    "_aggregate",
    "aggregate_replace",
    "_aggregate_type",
    # marks
    "TRITON_BUILTIN",
    "builtin",
    "is_builtin",
    "must_use_result",
    # programs, loops, compile time
    "assume",
    "condition",
    "num_programs",
    "program_id",
    "range",
    "static_assert",
    "static_print",
    "static_range",
    # tiles
    "arange",
    "broadcast",
    "broadcast_to",
    "cast",
    "cat",
    "expand_dims",
    "full",
    "item",
    "join",
    "permute",
    "reshape",
    "split",
    "to_tensor",
    "trans",
    "view",
    # memory
    "advance",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_poll",
    "atomic_store",
    "atomic_xchg",
    "atomic_xor",
    "load",
    "load_tensor_descriptor",
    "make_block_ptr",
    "make_tensor_descriptor",
    "store",
    "store_tensor_descriptor",
    # arithmetic
    "PropagateNan",
    "add",
    "binary_op_type_legalization",
    "builtin_max",
    "builtin_min",
    "check_bit_width",
    "clamp",
    "dot",
    "dot_scaled",
    "maximum",
    "minimum",
    "mul",
    "sub",
    "where",
    # many elements
    "associative_scan",
    "gather",
    "histogram",
    "map_elementwise",
    "reduce",
    # hints and diagnostics
    "debug_barrier",
    "device_assert",
    "device_print",
    "expect_zero",
    "max_constancy",
    "max_contiguous",
    "multiple_of",
    # code from elsewhere
    "dispatch",
    "extern",
    "extern_elementwise",
    "inline_asm_elementwise",
    # internals that user code reaches for
    "_normalize_tuple",
    "_promote_bfloat16_to_float32",
    "_reduce_with_indices",
    "_tensor_member_fn",
    "_type_for_tuple_values",
    "_unsplat",
    "_unwrap_if_constexpr",
    "_unwrap_iterable",
    "_unwrap_shape",
    "_wrap_axis",
]
