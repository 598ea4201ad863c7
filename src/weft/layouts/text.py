"""Layouts written out as Gluon's `format_tensor_view` and `format_hardware_view` do: a tile as nested brackets, or
place by place.

    >>> from weft.layouts import BlockedLayout
    >>> print(BlockedLayout([2], [2], [1], [0]).format_tensor_view([4]), end="")
    [T0:0, T0:1, T1:0, T1:1]
    >>> print(BlockedLayout([2], [2], [1], [0]).format_hardware_view([4]), end="")
    Warp0:
    (0), (2)
    (1), (3)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from .linear import LinearLayout

Points = npt.NDArray[np.int64]  # coordinates, of shape (dimensions, places)


def tensor_view(layout: LinearLayout) -> str:
    """What holds each element of a tile; of shared memory, the element at each offset."""
    shape = tuple(layout.out_dims.values())
    if layout.has_in("offset"):
        return _nested([_point(point, shape, ":") for point in _points(layout, "block", "offset").T], shape, ",")
    blocks, warps, lanes, registers = (layout.in_dims.get(dim, 1) for dim in ("block", "warp", "lane", "register"))
    holders: list[list[str]] = [[] for _ in range(prod(shape))]
    at = np.ravel_multi_index(tuple(_points(layout, "block", "warp", "lane", "register")), shape)
    for place, element in enumerate(at.reshape(-1).tolist()):
        rest, register = divmod(place, registers)
        block, thread = divmod(rest, warps * lanes)
        name = f"B{block}:" * (blocks > 1) + f"T{thread}:{register}"
        limits = ((block, blocks), (thread, warps * lanes), (register, registers))
        holders[element].append(" " * sum(len(str(size)) - len(str(value)) for value, size in limits) + name)
    return _nested(["|".join(names) for names in holders], shape, ", ")


def hardware_view(layout: LinearLayout) -> str:
    """The element at each offset of shared memory; the elements of each warp's lanes, a line for each register."""
    shape = tuple(layout.out_dims.values())
    blocks = layout.in_dims.get("block", 1)
    lines = []
    if layout.has_in("offset"):
        of = _points(layout, "block", "offset").reshape(len(shape), blocks, -1)
        for block in range(blocks):
            lines.append(f"Block: {block}:")
            for offset, point in enumerate(of[:, block].T):
                lines.append(f"Offset: {offset} -> {_point(point, shape, ',')}")
    else:
        sizes = [layout.in_dims.get(dim, 1) for dim in ("warp", "register", "lane")]
        of = _points(layout, "block", "warp", "register", "lane").reshape(len(shape), blocks, *sizes)
        for block in range(blocks):
            lines += [f"Block{block}:"] * (blocks > 1)
            for warp in range(sizes[0]):
                lines.append(f"Warp{warp}:")
                lines += [", ".join(_point(p, shape, ",") for p in of[:, block, warp, r].T) for r in range(sizes[1])]
    return "".join(line + "\n" for line in lines)


def _points(layout: LinearLayout, *dims: str) -> Points:
    """The coordinates of all places, the last of these dimensions first to change."""
    sizes = [layout.in_dims.get(dim, 1) for dim in dims]
    grid = np.indices(sizes).reshape(len(dims), -1)
    coordinates = layout.apply({dim: values for dim, values in zip(dims, grid) if layout.has_in(dim)})
    return np.stack([np.broadcast_to(coordinates[dim], grid.shape[1:]) for dim in layout.out_dims]).astype(np.int64)


def _point(point: Points, shape: Sequence[int], between: str) -> str:
    return "(" + between.join(f"{value:>{len(str(size))}}" for value, size in zip(point.tolist(), shape)) + ")"


def _nested(texts: Sequence[str], shape: Sequence[int], between: str) -> str:
    """Texts of elements in brackets as nested lists, a line for each row."""
    row = shape[-1]
    strides = [prod(shape[axis:]) for axis in range(len(shape))]
    lines = []
    for start in range(0, len(texts), row):
        opened = sum(start % stride == 0 for stride in strides)
        closed = sum((start + row) % stride == 0 for stride in strides)
        line = between.join(texts[start : start + row])
        lines.append(" " * (len(shape) - opened) + "[" * opened + line + "]" * closed + "\n")
    return "".join(lines)
