"""What builtins take for a parameter of a name, for errors about an argument of a wrong kind.

A parameter of a name means the same in all functions of the language: an `axis` is an integer known at compile time, a
`mask` is a tensor of bools or nothing. Nothing is refused by this table. It is asked when a builtin has failed with the
arguments of a call, to say which of them is at fault, and what is expected:

    `sum` takes an integer known at compile time as `axis`, found the tuple (constexpr 0, constexpr 1)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.language import core
from weft.language.callable import JITCallable

from .values import unwrap, wrap_scalar


@dataclass(frozen=True)
class Kind:
    """What a parameter takes, in words, and whether a value is of the kind."""

    words: str
    fits: Callable[[Any], bool]


@dataclass(frozen=True)
class Misfit:
    """An argument that is not of its parameter's kind."""

    parameter: str
    words: str
    value: Any


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_value(value: Any) -> bool:
    """Is it computed when the kernel runs, in one piece, or a number?"""
    computed = isinstance(value, core.base_value) and not isinstance(value, (core.constexpr, core.tuple, core.slice))
    return computed or _is_number(value)


def _is_pointer(value: Any) -> bool:
    return _is_value(value) and (not isinstance(value, core.tensor) or value.dtype.is_ptr()) and not _is_number(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int)


def _items(value: Any) -> Sequence[Any] | None:
    """The items of a tuple or a list; None for what is none."""
    if isinstance(value, core.tuple):
        return [unwrap(item) for item in value.values]
    return [unwrap(item) for item in value] if isinstance(value, (list, tuple)) else None


def _are_ints(value: Any) -> bool:
    items = _items(value)
    return _is_int(value) if items is None else all(map(_is_int, items))


def _are_sizes(value: Any) -> bool:
    items = _items(value)
    return items is not None and all(map(_is_int, items))


def _is_scalar(value: Any) -> bool:
    return _is_int(value) or (isinstance(value, core.tensor) and not value.type.is_block())


def _are_scalars(value: Any) -> bool:
    items = _items(value)
    return items is not None and all(map(_is_scalar, items))


def _is_layout(value: Any) -> bool:
    return any(base.__module__.startswith("weft.layouts") for base in type(value).__mro__)


def _is_function(value: Any) -> bool:
    return isinstance(value, JITCallable) or core.is_builtin(value)


def _is_descriptor(value: Any) -> bool:
    return hasattr(value, "block_shape") or hasattr(getattr(value, "type", None), "block_shape")


TENSOR: Final = Kind("a tensor or a number", lambda v: isinstance(v, core.tensor) or _is_number(v))
VALUE: Final = Kind("a tensor or a number", _is_value)
"""The same, where some function takes shared memory for a parameter of the name."""
POINTER: Final = Kind("a pointer or a tensor of pointers", _is_pointer)
MASK: Final = Kind("bools, or None", lambda v: v is None or _is_value(v))
INTEGER: Final = Kind("an integer known at compile time", _is_int)
INTEGERS: Final = Kind("integers known at compile time", _are_ints)
SHAPE: Final = Kind("a tuple of integers known at compile time", _are_sizes)
SCALARS: Final = Kind("a tuple of integers", _are_scalars)
FLAG: Final = Kind("a bool known at compile time", lambda v: v is None or isinstance(v, int))
TEXT: Final = Kind("a string known at compile time", lambda v: isinstance(v, str))
TYPE: Final = Kind("an element type (tl.float32, say)", lambda v: isinstance(v, core.dtype))
LAYOUT: Final = Kind("a layout (gl.BlockedLayout(...), say)", _is_layout)
FUNCTION: Final = Kind("a function with @jit", _is_function)
DESCRIPTOR: Final = Kind("a tensor descriptor", _is_descriptor)
MEMORY: Final = Kind(
    "a descriptor of shared memory", lambda v: isinstance(v, core.base_value) and not isinstance(v, core.tensor)
)

_NAMES: Final = (
    (TENSOR, "x y z input value val min max condition cond u1 u2 c0 c1 c2 c3 k0 k1 cmp expected_value stored_value"),
    (TENSOR, "seed offset i j size_i size_j size_g div lhs_scale rhs_scale"),
    (VALUE, "a b c other src lhs rhs arg acc index"),
    (POINTER, "pointer ptr base"),
    (MASK, "mask pred"),
    (INTEGER, "axis dim n_rounds num_bins k pack max_num_imprecise_acc num_outstanding count start end timeout_ns"),
    (INTEGERS, "values dims boundary_check"),
    (SHAPE, "shape block_shape order"),
    (SCALARS, "strides offsets coord"),
    (FLAG, "keep_dims descending reverse can_reorder volatile bitcast return_indices return_indices_tie_break_left"),
    (FLAG, "hex tie_break_left sanitize_overflow fast_math is_pure ieee_rounding lhs_k_pack rhs_k_pack allow_tf32"),
    (FLAG, "assert_trivial multicast two_ctas read_only use_acc is_async relaxed cluster"),
    (TEXT, "sem scope cache_modifier eviction_policy padding_option input_precision lhs_format rhs_format prefix msg"),
    (TEXT, "asm constraints fp_downcast_rounding precision a_format b_format cache"),
    (TYPE, "dtype out_dtype element_ty elem_type dst_ty"),
    (LAYOUT, "layout"),
    (FUNCTION, "combine_fn scalar_fn"),
    (Kind("a list or a tuple", lambda v: _items(v) is not None), "functions_and_args worker_num_warps worker_num_regs"),
    (DESCRIPTOR, "desc tensor_desc"),
    (MEMORY, "mbarrier barrier smem dest"),
)
KINDS: Final = {name: kind for kind, names in _NAMES for name in names.split()}

OTHERWISE: Final = {
    ("broadcast_to", "shape"): INTEGERS,
    ("reshape", "shape"): INTEGERS,
    ("view", "shape"): INTEGERS,
    ("make_block_ptr", "shape"): SCALARS,
    ("make_tensor_descriptor", "shape"): SCALARS,
    ("buffer_load", "offsets"): VALUE,
    ("rand4x", "offsets"): VALUE,
    ("builtin_max", "args"): TENSOR,
    ("builtin_min", "args"): TENSOR,
    ("associative_scan", "input"): Kind("a tensor or a tuple of tensors", lambda v: _is_value(v) or bool(_items(v))),
    ("reduce", "input"): Kind("a tensor or a tuple of tensors", lambda v: _is_value(v) or bool(_items(v))),
    ("inline_asm_elementwise", "args"): Kind("a tuple of tensors", lambda v: _items(v) is not None),
    ("inline_asm_elementwise", "dtype"): Kind(
        "an element type or a tuple of them", lambda v: isinstance(v, core.dtype) or _items(v) is not None
    ),
    ("load", "pointer"): Kind("a pointer or a tensor of pointers", _is_pointer),
    ("store", "pointer"): Kind("a pointer or a tensor of pointers", _is_pointer),
}
"""Parameters that differ from those of their name, by function and name."""


def misfit(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Misfit | None:
    """The first argument of a call that is not of its parameter's kind."""
    name = getattr(fn, "__name__", "")
    try:
        signature = inspect.signature(fn)
        given = signature.bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return None
    for parameter, value in given.items():
        kind = OTHERWISE.get((name, parameter)) or KINDS.get(parameter)
        if kind is None:
            continue
        declared = signature.parameters[parameter]
        several = declared.kind is inspect.Parameter.VAR_POSITIONAL
        for each in value if several and (kind is TENSOR or len(value) == 1) else [value]:
            omitted = declared.default is not inspect.Parameter.empty and unwrap(each) is unwrap(declared.default)
            if not omitted and not kind.fits(unwrap(each)):
                return Misfit(parameter, kind.words, wrap_scalar(each))
    return None
