"""Fold constants while the lane program is written.

    %w: f32x8 = rename %one                            the weights of a Welford reduction: each element counts once
    %s: f32x4 = arith.addf %w[0, 2, ..], %w[1, 3, ..]  becomes  2.0
    %q: f32x4 = arith.divf %w[1, 3, ..], %s            becomes  0.5

Neither LLVM nor the assembler does all of it: LLVM does not look into the approximate division of a GPU, and the
assembler not through a shuffle that stands behind a branch. A known number need not be exchanged between lanes or warps
at all, so a reduction asks here before it moves anything (reduce.py).

Tile IR has been folded before (passes/fold.py); what is left to do are the functions of reductions, whose operands are
known only from one step to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.ir.lane import Builder, LaneOp, Value
from weft.ops.dtypes import DTYPES
from weft.ops.table import ROWS, compute

FOLDED = frozenset(("f32", "f64", "i1", "i32", "i64"))
"""Elements that NumPy computes with as they are."""


def number_of(value: Value) -> int | float | None:
    """The number that all registers of a value hold in all lanes, if it is known."""
    op = value.op
    while op is not None and op.name == "rename":
        op = op.operands[0].op
    return op.attrs["value"] if op is not None and op.name == "constant" else None


def fold_numbers(build: Builder, start: int, results: Sequence[Value]) -> list[Value]:
    """Put constants in the place of what the operations behind `start` compute of constants; the results after it."""
    ops = build.block.ops[start:]
    if any(op.regions for op in ops):
        return list(results)
    del build.block.ops[start:]
    instead: dict[Value, Value] = {}
    for op in ops:
        op.operands = tuple([instead.get(x, x) for x in op.operands])
        number = _computed(op)
        if number is None:
            build.block.ops.append(op)
        else:
            result = op.results[0]
            constant = build.constant(result.elem, number)
            instead[result] = build.rename(constant, [0] * result.count)
    return [instead.get(x, x) for x in results]


def _computed(op: LaneOp) -> int | float | None:
    """What an operation computes, if that is one finite number."""
    row = ROWS.get(op.name)
    if row is None or row.meaning is None or len(op.results) != 1:
        return None
    if not FOLDED.issuperset(x.elem for x in (*op.operands, *op.results)):
        return None
    operands = []
    for x in op.operands:
        number = number_of(x)
        if number is None:
            return None
        operands.append(np.asarray(number).astype(DTYPES[x.elem]))
    with np.errstate(all="ignore"):
        result = np.asarray(compute(op.name, operands, op.results[0].elem, op.attrs))
    if result.dtype.kind == "f":
        return float(result) if np.isfinite(result) else None
    return int(result)
