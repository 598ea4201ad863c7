"""Tensor maps of a launch, and the global memory that programs have for themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.base import LaunchError
from weft.ir.lane import Parameter
from weft.targets.nvidia import TensorMap

from .values import DTYPES, Array

__all__ = ["SCRATCH", "aligned", "base_of", "tensor_map"]

SCRATCH = "memory of the programs"
KINDS = {"i8": "u8", "i16": "u16", "i32": "i32", "i64": "i64", "f8E4M3FN": "u8", "f8E5M2": "u8"}
"""What a map calls elements, where that is not their own name."""


def aligned(size: int, alignment: int = 128) -> Array:
    """Zeroed bytes at an address that is a multiple of something."""
    whole = np.zeros(size + alignment, np.uint8)
    skip = -int(whole.__array_interface__["data"][0]) % alignment
    return whole[skip : skip + size]


def base_of(name: str) -> str:
    """The name under which the array of a tensor map is known."""
    return f"{name}.base"


def tensor_map(parameter: Parameter, described: Any, address: int) -> TensorMap:
    """The map of an argument with `shape`, `strides` in elements and maybe `padding`, for the boxes wanted."""
    size = DTYPES[parameter.pointee].itemsize
    shape, strides = (tuple(int(x) for x in getattr(described, n)) for n in ("shape", "strides"))
    item = int(np.asarray(described.base).dtype.itemsize)
    if item != size:
        raise LaunchError(
            f"`{parameter.name}` describes elements of {item} bytes, the kernel wants {parameter.pointee}"
        )
    block = tuple(int(x) for x in getattr(described, "block_shape", parameter.block))
    if parameter.block and block != parameter.block:
        raise LaunchError(f"`{parameter.name}` describes blocks of {block}, the kernel was made for {parameter.block}")
    if len(shape) != len(parameter.box) or len(strides) != len(shape) or strides[-1] != 1:
        raise LaunchError(
            f"`{parameter.name}` must have {len(parameter.box)} dimensions, the last one contiguous; got the shape "
            f"{shape} with strides {strides}"
        )
    try:
        return TensorMap(
            address,
            size,
            shape[::-1],
            tuple(s * size for s in strides[-2::-1]),
            parameter.box,
            parameter.swizzle,
            nan=getattr(described, "padding", "zero") == "nan",
            dtype=KINDS.get(parameter.pointee, parameter.pointee),
        )
    except ValueError as found:
        raise LaunchError(f"`{parameter.name}`: {found}") from found
