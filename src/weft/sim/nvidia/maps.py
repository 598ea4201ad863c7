"""Tensor maps of a launch, and the global memory that programs have for themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.base import LaunchError
from weft.ir.lane import Parameter
from weft.targets.nvidia import TensorMap, map_of

from ..values import Array

__all__ = ["SCRATCH", "aligned", "base_of", "tensor_map"]

SCRATCH = "memory of the programs"


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
    try:
        return map_of(described, address, parameter.pointee, parameter.box, parameter.swizzle, parameter.block)
    except ValueError as found:
        raise LaunchError(f"`{parameter.name}` {found}") from found
