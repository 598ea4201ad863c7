"""How often each program of a grid goes through its loops, and which branches it takes: without following any.

    for start in range(0, (tl.program_id(0) + 1) * 128, 64): ...          2, 4, 6, ... times

Bounds and conditions that are made of the program's index, of arguments and constants are computed for all programs at
once; others, as those of a loop in a loop that depend on the outer one, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from weft.ir.lane import LaneOp, LaneProgram, Value

from .arithmetic import elementwise, is_elementwise
from .launch import scalar
from .values import DTYPES, Array

__all__ = ["trips"]

MOST = 1 << 20
"""Programs of a grid for which it is computed."""


def trips(
    program: LaneProgram, grid: tuple[int, int, int], scalars: Mapping[str, int | float]
) -> tuple[Array, bool, bool]:
    """int64 [program, loop or branch], of those that differ between programs; the first axis of a grid is the fastest.

    Programs with the same row go the same way, as far as that is known. Beside it, whether loops begin or end at
    other numbers in some programs than in others, however often they turn, and whether all that steers is known, so
    that programs with the same row can be followed together.

    >>> @weft.jit
    ... def triangle(out):
    ...     total = 0
    ...     for i in range(tl.program_id(0)):
    ...         total += i
    ...     tl.store(out + tl.program_id(0), total)
    >>> program = triangle.warmup(weft.like((4,), "i32"), grid=(4,), target="sim:cuda:80").program
    >>> numbers, differ, known = weft.sim.trips(program, (4, 1, 1), {})
    >>> numbers[:, 0].tolist(), differ, known
    ([0, 1, 2, 3], True, True)
    """
    total = grid[0] * grid[1] * grid[2]
    steering = [op for op in program.body.walk() if op.name in ("for", "if")]
    nothing = np.zeros((total, 0), np.int64)
    if not steering or total > MOST or total < 2:
        return nothing, False, False
    values = _Values(program, grid, scalars, steering)
    columns, apart, known = [], False, all(op.name != "while" for op in program.body.walk())
    for op in steering:
        of_program = [values.of(v) for v in (op.operands[:3] if op.name == "for" else op.operands[:1])]
        if any(v is None for v in of_program):
            known = False
            continue
        arrays = [np.broadcast_to(v.reshape(-1), (total,)).astype(np.int64) for v in of_program if v is not None]
        column = arrays[0]
        if op.name == "for":
            lower, upper, step = arrays
            apart = apart or any((bound != bound[0]).any() for bound in arrays)
            column = np.maximum(0, -(-(upper - lower) // np.maximum(1, step)))
        if (column != column[0]).any():
            columns.append(column)
    return np.stack(columns, axis=1) if columns else nothing, apart, known


class _Values:
    """Numbers that all lanes of a program share, as arrays [program, 1, 1] or [1, 1, 1]."""

    def __init__(
        self,
        program: LaneProgram,
        grid: tuple[int, int, int],
        scalars: Mapping[str, int | float],
        steering: list[LaneOp],
    ) -> None:
        self._known: dict[Value, Array] = {}
        for value, p in zip(program.body.arguments, program.parameters, strict=True):
            if p.name in scalars and p.elem not in ("ptr", "tensormap"):
                self._known[value] = scalar(p.elem, scalars[p.name]).data
        index = np.arange(grid[0] * grid[1] * grid[2])
        x, y, _ = grid
        self._ids = (index % x, index // x % y, index // (x * y))
        self._grid = grid
        wanted = self._wanted(steering)
        for op in program.body.walk():
            if wanted.intersection(op.results):
                self._compute(op)

    def of(self, value: Value) -> Array | None:
        """None for what is not known."""
        return self._known.get(value)

    @staticmethod
    def _wanted(steering: list[LaneOp]) -> set[Value]:
        """All that bounds and conditions are made of."""
        wanted: set[Value] = set()
        left = [v for op in steering for v in op.operands[: 3 if op.name == "for" else 1]]
        while left:
            value = left.pop()
            if value not in wanted:
                wanted.add(value)
                left += value.op.operands if value.op is not None else ()
        return wanted

    def _compute(self, op: LaneOp) -> None:
        result = op.results[0]
        if op.name == "program_id":
            self._known[result] = self._ids[op.attrs["axis"]].astype(np.int32)[:, None, None]
        elif op.name == "num_programs":
            self._known[result] = np.full((1, 1, 1), self._grid[op.attrs["axis"]], np.int32)
        elif op.name == "constant" and result.count == 1 and DTYPES[result.elem].kind in "ib":
            self._known[result] = scalar(result.elem, op.attrs["value"]).data
        elif is_elementwise(op.name) and len(op.results) == 1 and result.count == 1:
            operands = [self._known.get(v) for v in op.operands]
            if all(v is not None for v in operands):
                with np.errstate(all="ignore"):
                    computed = elementwise(op.name, [v for v in operands if v is not None], result.elem, op.attrs)
                self._known[result] = computed
