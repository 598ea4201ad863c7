"""Internals that user code reaches for, under the names that they have in `triton.language.core`."""

from ..aggregates import aggregate as _aggregate, aggregate_type as _aggregate_type
from ..constants import (
    unwrap as _unwrap_if_constexpr,
    unwrap_iterable as _unwrap_iterable,
    unwrap_shape as _unwrap_shape,
    wrap_axis as _wrap_axis,
)
from ..tensors import member as _tensor_member_fn
from ..tuples import normalize_tuple as _normalize_tuple, type_for_tuple_values as _type_for_tuple_values
from .arithmetic import promote_bfloat16_to_float32 as _promote_bfloat16_to_float32
from .collectives import reduce_with_indices as _reduce_with_indices
from .shapes import unsplat as _unsplat

__all__ = [
    "_aggregate",
    "_aggregate_type",
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
