"""Types from their names in a kernel's signature.

>>> str_to_ty("*kfp16", None), str_to_ty("i32", None)
(const_pointer<fp16>, weft.language.int32)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from weft.ops import BY_LANGUAGE

from . import dtypes as dt
from .constants import constexpr_type
from .descriptors import tensor_descriptor_type
from .dtypes import block_type, pointer_type
from .tuples import tuple_type

_SCALARS = {
    **{name: dt.dtype(name) for name in BY_LANGUAGE if name[0] not in "iu"},
    **{f"i{n}": dt.get_int_dtype(n, True) for n in (1, 8, 16, 32, 64)},
    **{f"u{n}": dt.get_int_dtype(n, False) for n in (1, 8, 16, 32, 64)},
    "B": dt.int1,
    "void": dt.void,
}


def str_to_ty(name: Any, c: Any) -> Any:
    """The type that a name in a signature stands for; `c` is the value of a `constexpr`, or of those in a tuple."""
    if isinstance(name, (tuple, list)):
        values = c if isinstance(c, (tuple, list)) else [c] * len(name)
        fields = getattr(name, "_fields", None)
        return tuple_type([str_to_ty(n, v) for n, v in zip(name, values, strict=True)], fields)
    if name == "constexpr":
        return constexpr_type(c)
    return _named(name)


laid_descriptors: dict[str, Any] = {}
"""What makes the type of a descriptor from its block and the text of a layout, `tensordesc<fp16[64,64],layout>`.

Put here by `weft.gluon`, which knows layouts: by the name of the layout's class, for all others under "".
"""


@lru_cache(maxsize=512)
def _named(name: str) -> Any:
    if name.startswith("*"):
        inner = name[1:]
        const = inner.startswith("k")
        return pointer_type(_named(inner[1:] if const else inner), const=const)
    if name.startswith("tensordesc_im2col<"):
        inner, _, rank = name.removesuffix(">").rpartition(",")
        return _descriptor(inner.replace("_im2col", "", 1) + ">", int(rank))
    if name.startswith("tensordesc<"):
        return _descriptor(name)
    type = _SCALARS.get(name)
    if type is None:
        raise ValueError(
            f"unknown type {name!r} in a signature: known are {', '.join(_SCALARS)}, *T, *kT, tensordesc<T[shape]>"
        )
    return type


def _descriptor(name: str, images: int = 0) -> Any:
    """`tensordesc<fp16[64,64]>`, or with a layout `tensordesc<fp16[64,64],NVMMASharedLayout(128, 16)>`."""
    inner = name.removeprefix("tensordesc<").removesuffix(">")
    element, bracket, rest = inner.partition("[")
    sizes, _, layout = rest.partition("]")
    if not bracket or not sizes:
        raise ValueError(f"a descriptor is written tensordesc<fp16[64,64]>, got {name!r}")
    shape = [int(s) for s in sizes.split(",")]
    rank = len(shape)
    block = block_type(_named(element), shape)
    if layout.startswith(",") and laid_descriptors:
        family = layout[1:].partition("(")[0]
        return laid_descriptors.get(family, laid_descriptors[""])(block, layout[1:], images)
    return tensor_descriptor_type(block, tuple_type([dt.int32] * rank), tuple_type([dt.int64] * rank))
