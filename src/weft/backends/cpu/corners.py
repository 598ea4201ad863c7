"""Conditions that hold at all points of a tile, or at none, if they do at a corner of it.

A comparison of integers that move in one direction along each bit of the iteration index holds everywhere if it holds
where it is the least likely to, and nowhere if it does not hold where it is the most likely to: `i < n` at the last i
and at the first, if i rises along every axis. A mask is a conjunction of such comparisons (`conjuncts`).

With `moving`, what is asked is about the points that differ in these bits alone, such as those of one vector, while
the other bits are those of the loops around it.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import reduce

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import int_const, vector_of
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.questions import Analysis, Steps, Widened, constant_int, operands_at
from weft.backends.llvm.values import I1, Value as Reg, const

Condition = tuple[str, Value, Coords, Coords]
"""("holds", a mask, where it is the least likely to hold, and the most) or ("sle" or "ule", an integer, where it must
be at most what it is, there)."""

ALL: Set[int] = frozenset(range(64))


def substitute_live(coords: Coords, source: int, moving: Set[int] = ALL) -> Coords:
    """The coordinates with live bits replaced by a constant: the first point of a nest, or the last."""
    return tuple(tuple(source if s in moving else s for s in coord) for coord in coords)


def conjuncts(
    analysis: Analysis, env: dict[Value, Reg | Buffer], mask: Value, coords: Coords, moving: Set[int] = ALL
) -> list[Condition] | None:
    """The comparisons a mask is the conjunction of, each at the points where it is the least and the most likely to
    hold, and what must be so for there to be such points.
    """
    op = mask.op
    if not mask.is_tile or op is None or mask in env:
        return None
    if op.name in ("tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans"):
        ((inner, at),) = operands_at(op, mask, coords)
        return conjuncts(analysis, env, inner, at, moving)
    if op.name == "arith.andi":
        parts: list[Condition] = []
        for inner, at in operands_at(op, mask, coords):
            conditions = conjuncts(analysis, env, inner, at, moving)
            if conditions is None:
                return None
            parts += conditions
        return parts
    if op.name in ("tt.splat", "arith.constant"):
        return [("holds", mask, coords, coords)]
    if op.name != "arith.cmpi" or op.attrs["predicate"] in (0, 1):
        return None
    less = op.attrs["predicate"] in (2, 3, 6, 7)  # a < b in some form, otherwise a > b
    low, high = (op.args[0], op.args[1]) if less else (op.args[1], op.args[0])
    orders = [ordered(analysis, v, coords, op.attrs["predicate"] < 6, moving) for v in (low, high)]
    if orders[0] is None or orders[1] is None:
        return None
    rising, falling = (analysis.exact_steps(v, coords, []) or {} for v in (low, high))
    gaps = [-(s or 0) for k, s in rising.items() if k in moving]  # how the room between them changes
    gaps += [s or 0 for k, s in falling.items() if k in moving]
    first, last = substitute_live(coords, -1, moving), substitute_live(coords, -2, moving)
    if all(g <= 0 for g in gaps):
        return [*orders[0], *orders[1], ("holds", mask, last, first)]
    if all(g >= 0 for g in gaps):
        return [*orders[0], *orders[1], ("holds", mask, first, last)]
    return None


def ordered(
    analysis: Analysis, value: Value, coords: Coords, signed: bool, moving: Set[int] = ALL
) -> list[Condition] | None:
    """Conditions under which an integer, and what it was widened from, does not wrap around within the tile: that
    its least element is below its greatest. None where its steps are not known.
    """
    needs: list[Widened] = []
    steps = analysis.exact_steps(value, coords, needs)
    if steps is None:
        return None
    result: list[Condition] = []
    for v, at, moves, sign in [*needs, (value, coords, steps, signed)]:
        there = {k: s or 0 for k, s in moves.items() if k in moving}
        if not there:
            continue
        if sum(abs(s) for s in there.values()) >= 1 << (element_bits(v.elem) - 1):
            return None
        low = tuple(tuple(c if c not in moving else -1 if there.get(c, 0) >= 0 else -2 for c in coord) for coord in at)
        high = tuple(tuple(c if c not in moving else -2 if there.get(c, 0) >= 0 else -1 for c in coord) for coord in at)
        result.append(("sle" if sign else "ule", v, low, high))
    return result


class Conditions:
    """Conditions at single points, emitted as scalars; those known to hold are left out."""

    def __init__(self, points: Evaluator) -> None:
        self.f, self.points = points.f, points
        self.regs: list[Reg] = []

    def scalar(self, value: Value, at: Coords) -> Reg:
        """An integer, or a bit of a mask, at a point."""
        return vector_of(self.f, self.points.eval(value, at), 0)

    def add(self, condition: Condition) -> None:
        """Ask for one more."""
        kind, value, first, second = condition
        if kind == "holds":
            self.regs.append(self.scalar(value, first))
            return
        low, high = self.scalar(value, first), self.scalar(value, second)
        x, y = int_const(low), int_const(high)
        if x is None or y is None or x > y or (kind == "ule" and x < 0 <= y):
            self.regs.append(self.f.icmp(kind, low, high))

    def all(self) -> Reg:
        """Whether all that was asked for holds."""
        return reduce(self.f.and_, self.regs) if self.regs else const(I1, 1)


def unwrapped(
    analysis: Analysis, emit: Conditions, remainders: Sequence[tuple[Value, Coords]], moving: Set[int] = ALL
) -> set[Value]:
    """The remainders that change nothing where all points lie below the divisor; the conditions for that are added."""
    places_of: dict[Value, list[tuple[Value, Coords, Value, Coords]]] = {}
    refused: set[Value] = set()
    orders: list[Condition] = []
    for value, coords in remainders:
        op = value.op
        if op is None or value in refused:
            continue
        dividend, divided_by = operands_at(op, value, coords)
        order = ordered(analysis, *dividend, "si" in op.name, moving)
        steps = analysis.exact_steps(*dividend, [])
        there = {b: s for b, s in (steps or {}).items() if b in moving}
        if order is None or not there or analysis.deps(*divided_by) or not _may_lie_below(there, op):
            refused.add(value)
            places_of.pop(value, None)
            continue
        orders += order
        places_of.setdefault(value, []).append((*dividend, *divided_by))
    for condition in dict.fromkeys(orders) if places_of else ():
        emit.add(condition)
    for value, places in places_of.items():
        assert value.op is not None
        signed = value.op.name == "arith.remsi"
        for x, at, y, where in places:
            last, divisor = emit.scalar(x, substitute_live(at, -2, moving)), emit.scalar(y, where)
            emit.regs.append(emit.f.icmp("slt" if signed else "ult", last, divisor))
            if signed and not analysis.nonnegative(x):
                first = emit.scalar(x, substitute_live(at, -1, moving))
                emit.regs.append(emit.f.icmp("sge", first, const(first.type, 0)))
    return set(places_of)


def _may_lie_below(steps: Steps, op: Op) -> bool:
    """Whether an index that moves by these steps may be less than what it is divided by at all points."""
    divisor = constant_int(op.args[1])
    forward = [s for s in steps.values() if s is not None and s >= 0]
    return len(forward) == len(steps) and (divisor is None or sum(forward) < divisor)
