"""Tensor maps of a launch: 128 bytes in which the copy engine finds what it has to know."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.base import LaunchError
from weft.ir.lane import Parameter
from weft.targets.nvidia import encode, map_of

from ..values import Array


def tensor_map(parameter: Parameter, described: Any, address: int) -> Array:
    """The map of an argument with `shape`, `strides` in elements and maybe `padding`, for the boxes wanted."""
    try:
        map = map_of(described, address, parameter.pointee, parameter.box, parameter.swizzle, parameter.block)
    except ValueError as error:
        raise LaunchError(f"`{parameter.name}` {error}") from error
    return np.frombuffer(encode(map), np.uint8)
