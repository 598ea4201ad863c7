"""The language of Gluon under the name of the module that has it in Triton: types and values, builtins, descriptors."""

from weft.language.core import *
from weft.language.core import (
    _unwrap_if_constexpr as _unwrap_if_constexpr,
    base_type as base_type,
    base_value as base_value,
)
from weft.language.protocol import builtin as builtin

from ..memory import shared_memory_descriptor as shared_memory_descriptor
from ..types import distributed_type as distributed_type, shared_memory_descriptor_type as shared_memory_descriptor_type
from .core import *  # type: ignore[assignment]
from .layouts import *
