"""What a kernel is compiled for, given its arguments: the slow and exact answer.

    specialize(7)                 ("i32", "")
    specialize(1)                 ("constexpr", 1)      int 1 becomes a constant
    specialize(32)                ("i32", "D")          divisible by 16
    specialize(np.zeros(4, "f4")) ("*fp32", "D")        an address divisible by 16
    specialize(1000, fine=True)   ("i32", "8")          divisible by 8, which a GPU is told: rows of 1,000 halves are
                                                        125 vectors of 16 bytes
    specialize(x, small=1 << 30)  ("*fp32", "DS")       the memory of x has at most 1 GiB

The first part is the type, the second what else is known; `D` becomes the attribute tt.divisibility = 16. A GPU's
kernels are compiled for multiples of 16, of 8, of 4, and for others: that makes vectors of 16 bytes of elements of 1, 2
and 4 bytes, and of 8 bytes of two of these. Multiples of 2 would make vectors of 4 bytes, which are no faster than
elements one by one. On the CPU multiples of 16 and others are told apart, as in Triton. `S` becomes the attribute
tt.pointer_range = 32, which a back end asks for that has `small_arrays`. A warm call does not come here: `binder` makes
a function that finds out only whether the answer could have changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from weft.base import LaunchError, LaunchOverflowError, LaunchTypeError, load
from weft.language.callable import JITCallable, KernelParam
from weft.language.keys import is_constexpr_value

from .arrays import ArrayFacts, host_facts
from .descriptor import TensorDescriptor

Path = tuple[int, ...]
INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)


DIVISORS = {16: "D", 8: "8", 4: "4", 1: ""}
"""What is known of a multiple of so much."""
COARSE = tuple(1 if rest else 16 for rest in range(16))
FINE = tuple(16 if not rest else 8 if not rest % 8 else 4 if not rest % 4 else 1 for rest in range(16))
"""For each remainder by 16 what divides a number, as far as kernels are compiled for it: on the CPU, and on GPUs."""


def _integer(value: int, specialize: bool, align: bool, fine: bool) -> tuple[Any, Any]:
    if specialize and value == 1:
        return "constexpr", 1
    if INT32[0] <= value <= INT32[1]:
        name = "i32"
    elif INT64[0] <= value <= INT64[1]:
        name = "i64"
    elif INT64[1] < value < 1 << 64:
        name = "u64"
    else:
        raise LaunchOverflowError(f"the integer {value} does not fit 64 bits", hint="pass it in parts, or as a float")
    if not specialize:
        return name, None
    return name, DIVISORS[(FINE if fine else COARSE)[value % 16]] if align else ""


def _rebuild(like: Any, items: list[Any]) -> Any:
    return type(like)(*items) if hasattr(like, "_fields") else tuple(items)


def refuse_kind(value: Any) -> LaunchTypeError:
    """The error for an argument that is nothing a kernel takes."""
    if isinstance(value, (list, range)):
        hint = "numpy.array(x) makes an array of a list, tuple(x) a tuple of arguments"
    elif isinstance(value, (bytes, bytearray, memoryview)) or type(value).__module__ == "array":
        hint = "numpy.frombuffer(x, dtype) makes an array of a buffer, without copying it"
    elif isinstance(value, str):
        hint = "text is for parameters that are annotated with tl.constexpr"
    elif isinstance(value, complex):
        hint = "pass its parts, x.real and x.imag"
    elif isinstance(value, (dict, set, frozenset)):
        hint = "pass its values one by one, or tuple(x) for a parameter that takes several"
    elif isinstance(value, (type, np.dtype)) or type(value).__name__ == "dtype":
        hint = "a type is for parameters that are annotated with tl.constexpr"
    elif inspect.isroutine(value):
        hint = "decorate the function with @jit to call it in the kernel"
    else:
        hint = "take its numbers and arrays, x.data say, and pass those"
    return LaunchTypeError(
        f"failed to specialize argument of type {type(value).__name__}: kernels take arrays, numbers, None, tuples of "
        "these, tensor descriptors and jit functions",
        hint=hint,
    )


Reader = Callable[[Any], ArrayFacts | None]
"""What says where an array is: `host_facts`, or for a GPU `device_facts`."""


def specialize(
    arg: Any,
    is_const: bool = False,
    specialize_value: bool = True,
    align: bool = True,
    read: Reader = host_facts,
    fine: bool = False,
    small: int = 0,
) -> tuple[Any, Any]:
    """The type of an argument and what is known of its value, in Triton's terms, or for a GPU `fine`; arrays of up to
    `small` bytes are small."""
    if arg is None:
        return "constexpr", None
    if isinstance(arg, (bool, np.bool_)):
        return "u1", None
    if isinstance(arg, (int, np.integer)):
        return _integer(int(arg), specialize_value, align, fine)
    if isinstance(arg, (float, np.floating)):
        return "fp32", None
    if isinstance(arg, TensorDescriptor):
        return arg.signature, arg.known
    if isinstance(arg, JITCallable):
        return "constexpr", arg.current_key()
    if is_constexpr_value(arg):
        return "constexpr", arg.value
    if isinstance(arg, tuple):
        parts = [
            specialize(a, read=read, fine=fine, small=small) for a in arg
        ]  # always in full: what is said of a parameter counts for its own value
        return _rebuild(arg, [p[0] for p in parts]), _rebuild(arg, [p[1] for p in parts])
    facts = read(arg)
    if facts is not None:
        name = f"*k{facts.element}" if is_const else f"*{facts.element}"
        if not specialize_value:
            return name, None
        is_small = small > 0 and load("weft.runtime.extents").is_within(arg, small)
        return name, "D" * (align and facts.address % 16 == 0) + "S" * is_small
    if all(hasattr(arg, name) for name in ("base", "shape", "strides", "block_shape")):
        copy = TensorDescriptor(arg.base, arg.shape, arg.strides, arg.block_shape, getattr(arg, "padding", "zero"))
        return copy.signature, copy.known
    raise refuse_kind(arg)


NATIVE = "supports_native_tensor_specialization"


def native_specialize_impl(backend: Any, arg: Any, is_const: bool, specialize_value: bool, align: bool) -> Any:
    """`specialize` in the calling convention of Triton's own, to which a descriptor is its type and no more.

    A back end whose kernels depend on more of an array says so itself, as AMD's does of its size.
    """
    kind, specialized = specialize(arg, is_const, specialize_value, align)
    if specialize_value and hasattr(arg, "data_ptr") and not getattr(backend, NATIVE, True):
        specialized = backend.get_tensor_specialization(arg, align=align)
    return kind, None if str(kind).startswith("tensordesc") else specialized


INT_RANGES = {
    **{f"i{n}": (-(1 << (n - 1)), (1 << (n - 1)) - 1) for n in (8, 16, 32, 64)},
    **{f"u{n}": (0, (1 << n) - 1) for n in (8, 16, 32, 64)},
}


def check_annotated(param: KernelParam, value: Any) -> None:
    """Whether a value fits the type that a parameter is annotated with."""
    name = param.annotation_type
    if name in INT_RANGES:
        low, high = INT_RANGES[name]
        if not isinstance(value, (int, np.integer)):
            raise LaunchTypeError(
                f"argument `{param.name}` is annotated {name}, got a {type(value).__name__}", param.name
            )
        if not low <= int(value) <= high:
            raise LaunchError(f"argument `{param.name}` is annotated {name}, {value} does not fit", param.name)
    elif name[:2] in ("fp", "bf") and not isinstance(value, (int, float, np.integer, np.floating)):
        raise LaunchTypeError(f"argument `{param.name}` is annotated {name}, got a {type(value).__name__}", param.name)


def specialize_param(
    param: KernelParam, value: Any, read: Reader = host_facts, fine: bool = False, small: int = 0
) -> tuple[Any, Any]:
    """The specialisation of one parameter, its annotation taken into account."""
    if param.is_constexpr:
        return "constexpr", value
    wanted, align = not param.do_not_specialize, not param.do_not_specialize_on_alignment
    try:
        fixed = param.annotation_type
        if fixed:
            check_annotated(param, value)
            if fixed == "u1" or fixed[:2] in ("fp", "bf") or not wanted:
                return fixed, None
            return fixed, specialize(value, param.is_const, wanted, align, read, fine, small)[1]
        return specialize(value, param.is_const, wanted, align, read, fine, small)
    except LaunchError as error:
        error.of_argument(param.name)
        raise


def find_paths(values: Any, wanted: Callable[[Any], bool]) -> list[Path]:
    """Paths of the leaves of nested tuples for which `wanted` holds."""
    paths: list[Path] = []

    def walk(value: Any, path: Path) -> None:
        if path and wanted(value):
            paths.append(path)
        if isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                walk(item, (*path, i))

    walk(values, ())
    return paths


def leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """The leaves of nested tuples with their paths."""
    if isinstance(value, (tuple, list)):
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, (*path, i))]
    return [(path, value)]


def leaf_at(values: Any, path: Path) -> Any:
    """The leaf of nested sequences at a path."""
    for i in path:
        values = values[i]
    return values


_ATTRIBUTES = {
    **{name: ("tt.divisibility", divisor) for divisor, name in DIVISORS.items() if name},
    "S": ("tt.pointer_range", 32),
    "R": ("tt.row_divisibility", 16),
    "Z": ("tt.zero_padding", 1),
}
"""What is known of a value, and the attribute of the argument that says so."""


def signature_of(
    names: list[str], specialization: list[tuple[Any, Any]], values: list[Any]
) -> tuple[Mapping[str, Any], dict[Path, Any], dict[Path, list[list[Any]]]]:
    """(signature, constants, attributes) for an ASTSource."""
    types = [t for t, _ in specialization]
    facts = [k for _, k in specialization]
    constants = {
        path: leaf_at(values, path) for path in find_paths(types, lambda t: isinstance(t, str) and t == "constexpr")
    }
    attrs = {
        path: attributes
        for path in find_paths(facts, lambda k: isinstance(k, str))
        if path not in constants
        and (attributes := [list(_ATTRIBUTES[k]) for k in leaf_at(facts, path) if k in _ATTRIBUTES])
    }
    return dict(zip(names, types, strict=True)), constants, attrs
