"""Bits of a nest along which an index stays within one row, so that what it is divided by is divided once for them.

    for i in range(64):                          for o in range(16):
        x = start + 16 * i                           x = start + 64 * o
        load at x // 64 * 6400 + x % 64      ->      row, place = x // 64 * 6400, x % 64
                                                     for i in range(4):
                                                         load at row + place + 16 * i

The quotient by a row's length does not depend on these bits, and the remainder moves along them as the index does. So
both are emitted for the first point of a row (`inside_row` says which bits are zero there), and the loops are cut
between the bits within a row and the others (`cuts`); LLVM takes out of the inner loop what does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.backends.cpu.coords import Coords
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.questions import MOVES, QUOTIENTS, REMAINDERS, Analysis, constant_int, operands_at

DIVISIONS = (*REMAINDERS, *QUOTIENTS)
LONGEST_ROW = 1 << 12
"""Elements of a row that matter: of longer ones a tile holds one."""


def inside_row(analysis: Analysis, op: Op, coords: Coords, lanes: Sequence[int]) -> dict[int, int]:
    """The bits, but for the lanes, along which the dividend of a division stays within a row that it begins where they
    are zero: how far it moves with each, as a power of two.
    """
    (x, at), (y, there) = operands_at(op, op.result, coords)
    if not x.is_tile or not analysis.nonnegative(x) or (constant_int(op.args[1]) or 0) <= 0:
        return {}
    steps = _steps(analysis, x, at, min(analysis.align(y, there, ()), LONGEST_ROW))
    steps = _aligned(analysis, x, at, steps)
    return {b: s.bit_length() - 1 for b, s in steps.items() if b not in lanes}


def cuts(rows: Iterable[Mapping[int, int]], bits: Sequence[int]) -> set[int]:
    """The bits of loops that end where a row does: the loops over the next bits are loops of their own."""
    return {max(row) for row in rows if row and set(row) <= set(bits)}


def _aligned(analysis: Analysis, x: Value, at: Coords, steps: dict[int, int]) -> dict[int, int]:
    """As many of the smallest steps as together reach no further than an index is aligned where their bits are zero."""
    while steps:
        largest = max(steps.values())
        distinct = len(set(steps.values())) == len(steps)
        if distinct and analysis.align(x, at, tuple(steps)) >= 2 * largest:
            break
        steps = {b: s for b, s in steps.items() if s < largest}
    return steps


def _steps(analysis: Analysis, x: Value, at: Coords, size: int) -> dict[int, int]:
    """How far an integer moves with each bit, for all bits along which that is known and less than `size`."""
    op = x.op
    if op is None or x in analysis.env or not x.is_tile or size <= 1:
        return {}
    if op.name == "tt.make_range":
        return {b: 1 << i for i, b in enumerate(at[0]) if b >= 0 and 1 << i < size}
    parts = operands_at(op, x, at)
    if op.name in (*MOVES, "arith.extsi", "arith.extui"):
        return _steps(analysis, *parts[0], size)
    if op.name == "arith.addi":
        sides = [_steps(analysis, *part, size) for part in parts]
        moving = [analysis.deps(*part) for part in parts]
        return {b: s for k in (0, 1) for b, s in sides[k].items() if b not in moving[1 - k]}
    if op.name in REMAINDERS and analysis.nonnegative(parts[0][0]):
        row = min(size, analysis.align(*parts[1], ()))
        return _aligned(analysis, *parts[0], _steps(analysis, *parts[0], row))
    return {}
