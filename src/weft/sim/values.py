"""What a value of a lane program is while it runs: an array [warp, lane, register], and which of it means nothing.

An axis along which all is the same may have length 1, as in NumPy's broadcasting: a constant is one number however many
warps there are. Warps of all blocks that run together stand in one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.ops.dtypes import DTYPES

__all__ = ["DTYPES", "Array", "Fragment", "full", "union", "unknown"]

Array = npt.NDArray[Any]


class Fragment:
    """One value: `data`, `undefined` (None, or where registers were never given a value) and `known`.

    `flights` are the asynchronous products that still work on these registers.

    The counter does not run what depends on data; it marks it not `known`, and its `data` is then of no meaning.
    """

    __slots__ = ("data", "flights", "known", "undefined")

    def __init__(
        self, data: Array, undefined: Array | None = None, known: bool = True, flights: tuple[Any, ...] = ()
    ) -> None:
        self.data, self.undefined, self.known, self.flights = data, undefined, known, flights

    def rows(self, warps: Array) -> Fragment:
        """The part of some warps."""

        def part(x: Array) -> Array:
            return x if x.shape[0] == 1 else x[warps]

        return Fragment(
            part(self.data), None if self.undefined is None else part(self.undefined), self.known, self.flights
        )


def full(x: Array, warps: int, lanes: int) -> Array:
    """With all its warps and lanes."""
    return np.broadcast_to(x, (warps, lanes, x.shape[2]))


def union(parts: Sequence[Array | None]) -> Array | None:
    """Where any of them holds; None is nowhere."""
    merged: Array | None = None
    for part in parts:
        if part is not None:
            merged = part if merged is None else np.logical_or(merged, part)
    return merged


def unknown(elem: str, count: int) -> Fragment:
    """What the counter has for so many registers that depend on data."""
    return Fragment(_zeros(elem, count), known=False)


@lru_cache(maxsize=256)
def _zeros(elem: str, count: int) -> Array:
    """Read-only."""
    return np.broadcast_to(np.zeros((), DTYPES[elem]), (1, 1, count))
