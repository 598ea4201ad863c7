"""A CuTe layout as a layout of shared memory: from offsets to coordinates, with padding where it has some.

    >>> cute_memory(CuteLayout((4, 8), (8, 1))).bases
    {'offset': ((0, 1), (0, 2), (0, 4), (1, 0), (2, 0))}

Rows of 32 that are 33 apart are no linear layout, and a PaddedSharedLayout: in the order of their offsets the elements
are a linear layout, and every 32 elements one place is left out.

    >>> cute_memory(CuteLayout((2, 32), (33, 1))).interval_padding_pairs
    ((32, 1),)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.base import LayoutError

from ..linear import LinearLayout
from ..zoo import PaddedSharedLayout
from .layout import CuteComposed, CuteLayout

__all__ = ["cute_memory"]

MOST_BITS = 22


def cute_memory(layout: CuteLayout | CuteComposed) -> LinearLayout | PaddedSharedLayout:
    """The layout of memory that a CuTe layout is; LayoutError, with the reason, where it is none that Weft has.

    It is linear if the offsets of a tile are all of 0 .. 2^n - 1, and a PaddedSharedLayout if they leave out places
    after every so many. Two coordinates at one offset, and gaps of other kinds, are refused.

    >>> from weft.layouts import cute_memory, parse_cute
    >>> cute_memory(parse_cute("Swizzle<1,0,1> o 0 o (2,2):(2,1)")).bases
    {'offset': ((0, 1), (1, 1))}
    """
    reason: LayoutError | None = None
    try:
        linear = layout.to_linear()
        if linear.is_invertible():
            return linear.invert()
    except LayoutError as error:
        reason = error
    sizes = [1] * len(layout.modes())
    for at, group in enumerate(layout.modes()):
        for size, _ in group:
            sizes[at] *= size
    count = int(np.prod(sizes, dtype=object))
    if count & (count - 1) or count > 1 << MOST_BITS:
        raise reason or LayoutError(f"{layout}: {count} coordinates; memory is read of up to 2^{MOST_BITS}")
    offsets = np.asarray(layout.at(np.arange(count, dtype=np.int64)))
    order = np.argsort(offsets, kind="stable")
    places = offsets[order]
    same = np.flatnonzero(places[1:] == places[:-1])
    if same.size:
        first, second = (_coordinate(int(order[same[0] + i]), sizes) for i in (0, 1))
        raise LayoutError(
            f"{layout}: {first} and {second} have one offset, {places[same[0]]}, so that it is no layout of memory",
            hint="from_cute gives the map from coordinates to offsets; in an expression, flatten_outs() after it does",
        )
    pairs = _padding(places)
    ranks = np.empty(count, np.int64)
    ranks[order] = np.arange(count)
    columns = [int(ranks[1 << i]) for i in range(count.bit_length() - 1)]
    table = np.zeros(1, np.int64)
    for column in columns:
        table = np.concatenate([table, table ^ column])
    if pairs is None or (table != ranks).any():
        raise reason or LayoutError(
            f"{layout}: its {count} elements leave places out up to offset {places[-1]}, not the same after every so "
            "many",
            hint="layouts of memory have no gaps, or the padding of a PaddedSharedLayout",
        )
    bits = {f"dim{i}": size.bit_length() - 1 for i, size in enumerate(sizes)}
    at, named = 0, {}
    for name, log in bits.items():
        named[name] = [(column,) for column in columns[at : at + log]]
        at += log
    linear = LinearLayout(named, {"offset": count}).invert()
    return PaddedSharedLayout(pairs, [list(b) for b in linear.bases["offset"]], [], sizes)


def _padding(places: np.ndarray[Any, np.dtype[np.int64]]) -> list[list[int]] | None:
    """The pairs (interval, padding) of which places in order leave out; None where no pairs do."""
    numbers = np.arange(len(places))
    gaps = places - numbers
    pairs: list[list[int]] = []
    interval = 1
    while interval < len(places):
        more = int(gaps[interval]) - sum(interval // i * p for i, p in pairs)
        if more:
            pairs.append([interval, more])
        interval *= 2
    if gaps[0] or any(p < 1 or p & (p - 1) for _, p in pairs) or not pairs:
        return None
    found = sum(numbers // i * p for i, p in pairs)
    return pairs if (gaps == found).all() else None


def _coordinate(index: int, sizes: list[int]) -> str:
    """(3, 2), the first mode the fastest."""
    values = []
    for size in sizes:
        values.append(index % size)
        index //= size
    return f"({', '.join(map(str, values))})"
