"""triton.runtime.jit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from weft.language.callable import (
    BoundConstexprFunction as BoundConstexprFunction,
    ConstexprFunction as ConstexprFunction,
    JITCallable,
    KernelParam as KernelParam,
    constexpr_function as constexpr_function,
)
from weft.runtime import (
    JITFunction as JITFunction,
    JitFunctionInfo as JitFunctionInfo,
    KernelInterface as KernelInterface,
    MockTensor as MockTensor,
    TensorWrapper as TensorWrapper,
    driver as driver,
    jit as jit,
    knobs as knobs,
    reinterpret as reinterpret,
)
from weft.runtime.arrays import array_facts, dtype_name
from weft.runtime.specialize import native_specialize_impl as native_specialize_impl, specialize

from .._utils import type_canonicalisation_dict as type_canonicalisation_dict

T = TypeVar("T")

TRITON_MODULE, GLUON_MODULE = "triton.language", "triton.experimental.gluon.language"
"""Where the languages' names are."""


def convert_to_tuple_if_list(item: Any) -> Any:
    """A tuple for a list, whose lists are tuples too; anything else as it is."""
    return tuple(map(convert_to_tuple_if_list, item)) if isinstance(item, list) else item


def specialize_impl(backend: Any, arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Any:
    """The type of an argument and what is known of its value."""
    return specialize(arg, is_const, specialize_value, align)


def create_specialize_impl(specialize_extra: Any = None) -> Callable[..., Any]:
    """`specialize` in the calling convention of older versions."""

    def impl(arg: Any, is_const: bool = False, specialize_value: bool = True, align: bool = True) -> Any:
        return specialize(arg, is_const, specialize_value, align)

    return impl


def mangle_type(arg: Any, specialize_value: bool = False) -> str:
    """The type of an argument in a signature."""
    facts = array_facts(arg)
    if facts is not None:
        return f"*{dtype_name(facts.element)}"
    kind = specialize(arg, False, specialize_value, specialize_value)[0]
    return str(kind)


def get_full_name(fn: Any) -> str:
    """module.qualified name of a function."""
    return f"{fn.__module__}.{fn.__qualname__}"


def get_jit_fn_file_line(fn: Any) -> tuple[str, int]:
    """The file of a jit function, and the line of its `def`; `fn` may be an Autotuner or Heuristics around it."""
    while not isinstance(fn, JITCallable):
        fn = fn.fn
    start = next((i for i, line in enumerate(fn.raw_src) if line.strip().startswith("def ")), 0)
    return fn.fn.__code__.co_filename, fn.starting_line_number + start
