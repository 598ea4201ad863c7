"""Corners of layouts as text, small enough for an error message.

A tile in registers is drawn as the thread and the register that hold each element: `T33:2` is register 2 of thread 33
of the block. A tile in memory is drawn as the byte at which each element lies.

>>> from weft.layouts import BlockedLayout, SwizzledSharedLayout
>>> print("\\n".join(sketch(BlockedLayout([1, 2], [8, 4], [4, 1], [1, 0]), [32, 64], rows=2, columns=4)))
         0     1     2     3
    0   T0:0  T0:1  T1:0  T1:1  ...
    1   T4:0  T4:1  T5:0  T5:1  ...
    ...
>>> memory = SwizzledSharedLayout(2, 1, 4, [1, 0])
>>> print("\\n".join(sketch_memory(memory.to_linear([8, 8]), 2, rows=2, columns=4)))
        0   1   2   3
    0    0   2   4   6  ...
    1   20  22  16  18  ...
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .linear import LinearLayout
from .zoo import DistributedLayout, with_gaps

__all__ = ["sketch", "sketch_memory"]

ROWS, COLUMNS = 3, 6


def sketch(
    layout: DistributedLayout | LinearLayout, shape: Sequence[int], rows: int = ROWS, columns: int = COLUMNS
) -> list[str]:
    """The corner of a tile in registers, line by line; leading dimensions beyond two are at 0.

    >>> from weft.layouts import BlockedLayout, sketch
    >>> sketch(BlockedLayout([1, 2], [2, 2], [1, 1], [1, 0]), [2, 4])[1].split()
    ['0', 'T0:0', 'T0:1', 'T1:0', 'T1:1']
    """
    linear = layout if isinstance(layout, LinearLayout) else layout.to_linear(shape)
    homes = linear.pseudoinvert()
    lanes = linear.in_dims.get("lane", 1)

    def cell(point: dict[str, int]) -> str:
        home = homes.apply(point)
        return f"T{home.get('warp', 0) * lanes + home.get('lane', 0)}:{home.get('register', 0)}"

    return _drawn(linear, cell, rows, columns)


def sketch_memory(
    memory: LinearLayout,
    width: int,
    gaps: Sequence[Sequence[int]] = (),
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> list[str]:
    """The corner of a tile of elements of `width` bytes in shared memory, line by line.

    >>> from weft.layouts import SwizzledSharedLayout, sketch_memory
    >>> sketch_memory(SwizzledSharedLayout(1, 1, 2, [1, 0]).to_linear([2, 2]), 4)[2].split()
    ['1', '12', '8']
    """
    places = memory.pseudoinvert()
    return _drawn(memory, lambda point: str(with_gaps(int(places.apply(point)["offset"]), gaps) * width), rows, columns)


def _drawn(layout: LinearLayout, cell: Callable[[dict[str, int]], str], rows: int, columns: int) -> list[str]:
    """The corner of the last two dimensions; others are at 0."""
    names, shape = list(layout.out_dims), list(layout.out_dims.values())
    across = min(columns, shape[-1])
    down = min(rows, shape[-2]) if len(shape) > 1 else 1

    def point(row: int, column: int) -> dict[str, int]:
        coordinates = dict.fromkeys(names, 0)
        coordinates[names[-1]] = column
        if len(names) > 1:
            coordinates[names[-2]] = row
        return coordinates

    cells = [[cell(point(row, column)) for column in range(across)] for row in range(down)]
    width = max(len(text) for line in cells for text in line)
    more = "  ..." if across < shape[-1] else ""
    lines = ["     " + "".join(f"  {column!s:>{width - 1}} " for column in range(across))]
    for row, line in enumerate(cells):
        name = f"{row:>5}" if len(shape) > 1 else " " * 5
        lines.append((name + "".join(f"  {text:>{width}}" for text in line) + more).rstrip())
    if len(shape) > 1 and down < shape[-2]:
        lines.append("    ...")
    return [line.rstrip() for line in lines]
