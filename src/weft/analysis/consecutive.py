"""Find the row of consecutive elements that addresses and masks describe: where it begins, and where it ends.

    %p = tt.addptr (tt.splat (tt.addptr %x, %at)), %i              base %x, terms [%at, 4]
    %q = tt.addptr %p, (tt.splat 4)
    %m = arith.cmpi slt, (%i + 4), (tt.splat %n)                   ends [(%n, [4], 0)]
    tt.load %q, %m                                    (%i = tt.make_range)

Element i of this tile is element i + %at + 4 of %x, and it is accessed only if i < %n - 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft import ir

__all__ = ["Row", "Term", "row_at", "scalar_of"]

Term = SSAValue | int


@dataclass
class Row:
    """Consecutive elements from `base` + `terms` on; `ends` say how many of them are accessed."""

    base: SSAValue
    terms: list[Term]
    ends: list[tuple[Term, list[Term], int]]
    """(limit, added, more), where `more` is 0 or 1: element i is accessed only if i + sum(added) < limit + more."""
    conditions: list[SSAValue]
    """Scalars without which no element is accessed: all of them must be true."""


def row_at(pointer: SSAValue, masks: Sequence[SSAValue]) -> Row | None:
    """The row that addresses and masks describe; None if they describe anything else."""
    place = _place(pointer)
    row = Row(*place, [], []) if place is not None else None
    return row if row is not None and all(_bound(mask, row) for mask in masks) else None


def scalar_of(value: SSAValue) -> Term | None:
    """The scalar, or the integer constant, that a tile repeats."""
    op = value.owner
    if not ir.is_tensor(value.type):
        return value
    if not isinstance(op, Operation):
        return None
    if op.name == "tt.splat":
        return op.operands[0]
    if op.name == "arith.constant":
        number = ir.splat_value(op.properties["value"])
        return number if number is not None else None  # type: ignore[return-value]
    return None


def _sum(value: SSAValue) -> tuple[int, list[Term]] | None:
    """A value as a sum: (how often the index in the tile occurs, the scalar terms); None if it is no such sum."""
    op = value.owner
    if isinstance(op, Operation) and op.name in ("arith.addi", "arith.extsi"):
        parts = [_sum(x) for x in op.operands]
        if any(x is None for x in parts):
            return None
        return sum(x[0] for x in parts if x), [t for x in parts if x for t in x[1]]
    if not ir.is_tensor(value.type):
        return 0, [value]
    if isinstance(op, Operation) and op.name == "tt.make_range":
        start = ir.int_value(op.properties["start"])
        return 1, [start] if start else []
    scalar = scalar_of(value)
    if scalar is None or isinstance(scalar, int):
        return None if scalar is None else (0, [scalar])
    return _sum(scalar)


def _place(pointer: SSAValue) -> tuple[SSAValue, list[Term]] | None:
    """(base, terms) of a tile of consecutive addresses; None of any other."""
    terms, count = list[Term](), 0
    while True:
        op = pointer.owner
        if isinstance(op, Operation) and op.name == "tt.splat":
            pointer = op.operands[0]
        elif isinstance(op, Operation) and op.name == "tt.addptr" and "tt.divisibility" not in op.attributes:
            index = _sum(op.operands[1])
            if index is None:
                return None
            count += index[0]
            terms += index[1]
            pointer = op.operands[0]
        else:
            return (pointer, terms) if count == 1 and not ir.is_tensor(pointer.type) else None


def _bound(mask: SSAValue, row: Row) -> bool:
    """Add the bounds and conditions of a mask to a row; False if the mask has parts that are neither."""
    op = mask.owner
    if isinstance(op, Operation) and op.name == "arith.andi":
        return all(_bound(x, row) for x in op.operands)
    if not isinstance(op, Operation) or op.name != "arith.cmpi":
        scalar = scalar_of(mask)
        if isinstance(scalar, SSAValue):
            row.conditions.append(scalar)
        return isinstance(scalar, SSAValue) or scalar in (-1, 1, True)
    predicate = ir.int_value(op.properties["predicate"])
    left, right = op.operands if predicate in (2, 3) else reversed(op.operands)
    numbers, limit = _sum(left), scalar_of(right)
    if predicate not in (2, 3, 4, 5) or numbers is None or numbers[0] != 1 or limit is None:
        return False
    row.ends.append((limit, numbers[1], int(predicate in (3, 5))))
    return True
