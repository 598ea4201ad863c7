"""Memory of a launch beside the caller's arrays: what programs have for themselves, and what describes arguments."""

from __future__ import annotations

import numpy as np

from .values import Array

SCRATCH = "memory of the programs"


def aligned(size: int, alignment: int = 128) -> Array:
    """Zeroed bytes at an address that is a multiple of something."""
    whole = np.zeros(size + alignment, np.uint8)
    skip = -int(whole.__array_interface__["data"][0]) % alignment
    return whole[skip : skip + size]


def base_of(name: str) -> str:
    """The name under which the array of a tensor map is known."""
    return f"{name}.base"
