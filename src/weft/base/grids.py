"""How many blocks a launch starts for the programs of a grid."""

from __future__ import annotations

from collections.abc import Sequence


def blocks_along_x(grid: Sequence[int], programs_each: int, at_a_time: int) -> int:
    """How many blocks a launch starts along x: enough for all that run at a time, and for no more than
    `programs_each` programs by each.

    >>> [blocks_along_x((5000, 1, 1), each, at_a_time) for each, at_a_time in ((1, 100), (8, 100), (8, 1000))]
    [5000, 625, 1000]
    >>> blocks_along_x((50, 3, 1), 8, 100)  # of each of three rows, so that 99 run at a time
    33
    """
    x, y, z = grid
    return min(x, max(at_a_time // max(1, y * z), -(-x // programs_each)))
