"""How far values move from one period of a loop to the next, and for how many periods everything stays as it is.

    for k in range(0, 4096, 64):               k moves by 64 in an iteration
        load x + k, k + 32 < 4080              the address by 64 elements, 128 bytes, four whole sectors; the mask holds
                                               as it does now until k is 4048: for 63 iterations more, if k is 0

While a loop's iterations are followed, each value's slope is computed beside it: exactly, as sums and products by what
does not move are all that addresses are mostly made of. A comparison says for how many periods its result is the same,
the `horizon`; an access counts the same in all of them if its address moves by whole sectors, or by whole rows of banks
in shared memory. If what the loop carries moves by what it was taken to move by, the periods up to the horizon count
what the one that was followed does, by induction.

A loop may have loops inside, of which iterations are left out in the same way (proven.py). What is the case in those
before and behind them, which are followed, is so in them: all is even between.

`reason` says why nothing is known: another operation is given a value that moves, or one that may be anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import gcd, lcm

import numpy as np

from weft.ir.lane import Block, LaneOp, Value
from weft.ops.row import Row
from weft.ops.table import ROWS
from weft.targets.table import instruction

from .arithmetic import is_elementwise
from .contexts import AnyContext
from .memory import SECTOR
from .values import Array

__all__ = ["Slopes", "compact"]

FOREVER = 1 << 40
"""A horizon behind which no loop ends, and a bound on numbers of 64 bits with which sums do not wrap."""
PLAIN = frozenset((
    "barrier", "fence", "commit_async", "wait_async", "print", "assert", "check", "trap", "keep", "clock", "undefined",
))  # fmt: skip
"""Operations that count the same whatever they are given, and whose results are not known."""


def compact(slope: Array) -> Array | None:
    """One number where all are the same, as they mostly are; None for zero."""
    if slope.size > 1 and (slope == slope[:1, :1, :1]).all():
        slope = slope[:1, :1, :1]
    return slope if slope.any() else None


UNKNOWN = frozenset(("while", "partitions", "assembly"))
"""Operations whose results nothing is known of."""


class _Unproven(Exception):
    """Nothing is known of the period."""


class Slopes:
    """The slopes of values in the iterations of a period, those that are not zero."""

    def __init__(self, context: AnyContext) -> None:
        self._context = self._whole = context
        self._depth = 0
        """Of loops inside the one that is looked at."""
        self._of: dict[Value, Array] = {}
        self._wild: set[Value] = set()
        """Values that may be anything in another period."""
        self.horizon = FOREVER
        self.times = 1
        """So many periods together move each address by whole sectors and rows of banks."""
        self.reason = ""

    def begin(self, body: Block, slopes: Sequence[Array | None]) -> None:
        """An iteration begins: how far the body's arguments move, None for not."""
        self._of, self._wild = {}, set()
        for value, slope in zip(body.arguments, slopes, strict=True):
            self._set(value, slope)

    def end(self, body: Block, matters: Sequence[int]) -> list[Array | None] | None:
        """How far the values move that it hands on; None where that is not known of those that matter."""
        handed_on = body.ops[-1].operands
        if not self.reason and self._wild.intersection(handed_on[i] for i in matters):
            self.reason = "it hands on what depends on memory"
        return [self._of.get(v) for v in handed_on] if self.is_open else None

    @property
    def is_open(self) -> bool:
        """Whether there may be periods that count like this one."""
        return not self.reason and self.horizon > 0

    # -- loops inside -------------------------------------------------------------------------------------------------

    def enter(self, context: AnyContext, loop: LaneOp) -> None:
        """A loop inside begins. It turns as often in each period if its bounds move together."""
        lower, upper, step = (self._of.get(v) for v in loop.operands[:3])
        if context is not self._whole:
            self.reason = "a loop inside is not for all warps"
        elif self._wild.intersection(loop.operands[:3]) or step is not None or not _are_same(lower, upper):
            self.reason = "a loop inside does not turn as often"
        self._depth += 1
        self._hand_on([loop.operands[0], *loop.operands[3:]], loop.regions[0].arguments)

    def again(self, loop: LaneOp) -> None:
        """The next iteration of a loop inside begins."""
        body = loop.regions[0]
        self._hand_on([body.arguments[0], *body.ops[-1].operands], body.arguments)

    def leave(self, loop: LaneOp, has_turned: bool) -> None:
        """A loop inside has ended."""
        self._depth -= 1
        self._hand_on(loop.regions[0].ops[-1].operands if has_turned else loop.operands[3:], loop.results)

    def _hand_on(self, values: Sequence[Value], to: Sequence[Value]) -> None:
        """What is said of some values is said of others from here on."""
        slopes, are_wild = [self._of.get(v) for v in values], [v in self._wild for v in values]
        self._forget(to)
        for value, slope, is_wild in zip(to, slopes, are_wild, strict=True):
            self._set(value, slope)
            if is_wild:
                self._wild.add(value)

    def _forget(self, values: Sequence[Value]) -> None:
        """These are computed anew, as in each iteration of a loop inside."""
        for value in values:
            self._of.pop(value, None)
            self._wild.discard(value)

    def as_at_first(self, body: Block, matters: Sequence[int]) -> bool:
        """Whether what a loop inside hands on moves, in a period of the outer one, as what it was given."""
        pairs = [(body.arguments[1 + i], body.ops[-1].operands[i]) for i in matters]
        return not any(
            a in self._wild or b in self._wild or not _are_same(self._of.get(a), self._of.get(b)) for a, b in pairs
        )

    def after(self, context: AnyContext, op: LaneOp) -> None:
        """An operation was followed, and its results are there."""
        if not self.is_open:
            return
        if op.name not in LOOKED_AT and self._of.keys().isdisjoint(op.operands) and self._wild.isdisjoint(op.operands):
            self._forget(op.results)
            return
        self._context = context  # some of the warps may be in a branch
        try:
            self._follow(op)
        except _Unproven:
            self.reason = f"`{op.name}` is given what moves"

    def _follow(self, op: LaneOp) -> None:
        moving = [self._of[v] for v in op.operands if v in self._of]
        if op.name in UNKNOWN or any(len(slope) not in (1, self._context.count) for slope in moving):
            raise _Unproven
        if op.name == "for":
            return  # `leave` has been told of it
        self._forget(op.results)
        if op.name == "if":
            self._branch(op)
        elif op.name in ACCESSES or (op.name == "instruction" and instruction(op.attrs["isa"]).touches):
            self._access(op)
            self._wild.update(v for v in op.results if self._context.env[v].known)
        elif op.name in PLAIN or not (moving or self._wild.intersection(op.operands)):
            return
        elif not all(self._context.env[v].known for v in op.results):
            return  # what is not known has no slope
        elif self._wild.intersection(op.operands):
            self._wild.update(op.results)
        elif op.name in MOVES:
            self._set(op.results[0], MOVES[op.name](self, op))
        elif is_elementwise(op.name):
            rule = RULES.get(op.name)
            slope = rule(self, op) if rule is not None else None
            if slope is None:
                self._wild.update(op.results)
            else:
                self._set(op.results[0], slope)
        elif op.name in ("pack", "unpack", "permute", "shuffle", "ballot", "instruction", "await"):
            self._wild.update(op.results)
        else:
            raise _Unproven

    def _set(self, value: Value, slope: Array | None) -> None:
        slope = None if slope is None else compact(slope)
        if slope is not None:
            self._of[value] = slope

    def slope(self, value: Value) -> Array:
        """How far a value moves."""
        found = self._of.get(value)
        return np.zeros((1, 1, 1), self.data(value).dtype) if found is None else found

    def data(self, value: Value) -> Array:
        """What it is now."""
        data: Array = self._context.env[value].data
        return data

    def moves(self, value: Value) -> bool:
        """Whether it does."""
        return value in self._of

    def is_inside(self) -> bool:
        """Whether a loop inside is followed, of which iterations may be left out in the middle."""
        return self._depth > 0

    def until(self, periods: Array | int) -> None:
        """Something is as it is now for so many periods more."""
        self.horizon = min(self.horizon, int(np.min(periods)))

    def whole(self, value: Value, is_unsigned: bool = False) -> tuple[Array, Array]:
        """A value and its slope as numbers without an end: it does not wrap up to the horizon."""
        data, slope = self.data(value), self.slope(value).astype(np.int64)
        bits = 8 * data.dtype.itemsize
        low, high = (0, (1 << bits) - 1) if is_unsigned else (-1 << bits - 1, (1 << bits - 1) - 1)
        if is_unsigned:
            data = data.view(f"u{data.dtype.itemsize}")
        if bits == 64:
            low, high = max(low, -1 << 61), 1 << 61
            if not slope.any():
                return np.clip(data, low, high).astype(np.int64), slope
            if (data > high).any() or (data < low).any() or (abs(slope) > FOREVER).any():
                raise _Unproven
        data = data.astype(np.int64)
        room = np.where(slope > 0, high - data, data - low)
        self.until(np.where(slope == 0, FOREVER, room // np.maximum(1, abs(slope))))
        return data, slope

    # -- what counts --------------------------------------------------------------------------------------------------

    def _access(self, op: LaneOp) -> None:
        for value, period in _addresses(self._context, op):
            slope = self._of.get(value)
            if value in self._wild or (slope is not None and (not period or (slope != slope[:, :1, :1]).any())):
                raise _Unproven
            if slope is None:
                continue
            for step in np.unique(slope).tolist():
                self.times = lcm(self.times, period // gcd(step, period))

    def _branch(self, op: LaneOp) -> None:
        condition = self._context.env[op.operands[0]]
        if op.operands[0] in self._wild:
            raise _Unproven
        ways = np.unique(condition.data) if condition.known else [bool(self._context.batch.launch.suppose)]
        for i, result in enumerate(op.results):
            given = [op.regions[0 if way else 1].ops[-1].operands[i] for way in ways]
            slopes = [self._of.get(value) for value in given]
            if self._wild.intersection(given) or any(not _are_same(slopes[0], other) for other in slopes[1:]):
                self._wild.add(result)
            else:
                self._set(result, slopes[0])


def _are_same(a: Array | None, b: Array | None) -> bool:
    return a is b if a is None or b is None else a.size == b.size == 1 and bool((a == b).all())


def _addresses(context: AnyContext, op: LaneOp) -> list[tuple[Value, int]]:
    """The operands that an access depends on, each with the distance by which it may move so that it counts the same; 0
    where it must not move. What goes to shared memory is among them, as it may be read again."""
    machine = context.batch.program.machine
    banks = machine.banks * machine.bank_bytes
    if op.name == "copy_async":
        return [(op.operands[0], banks), (op.operands[1], SECTOR), *((v, 0) for v in op.operands[2:])]
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        if entry.touches in ("sync", "barrier"):
            return []
        if entry.touches == "bulk":  # boxes are counted by the lanes that copy them
            return [(v, 0) for v in op.operands[-1:]]
        if entry.touches == "shared" and "multiplies" not in entry.params:
            return [(op.operands[0], banks), *((v, 0) for v in op.operands[1:])]
        return [(v, 0) for v in op.operands]
    periods = {"global": SECTOR, "shared": banks}
    masked = [v for v in op.operands[1:] if v.elem == "i1"]
    stored = [v for v in op.operands[1:2] if op.name == "store" and op.attrs["space"] != "global"]
    return [(op.operands[0], periods.get(op.attrs["space"], 0)), *((v, 0) for v in (*masked, *stored))]


ACCESSES = frozenset(("load", "store", "atomic", "compare_and_swap", "copy_async"))
LOOKED_AT = ACCESSES | UNKNOWN | {"for", "if", "instruction"}
"""Operations of which something is to be said even if they are given nothing that moves."""

# -- slopes of results -------------------------------------------------------------------------------------------------

Rule = Callable[[Slopes, LaneOp], Array | None]
"""The slope of a result; None where it may be anything in another period."""


def _sum(s: Slopes, op: LaneOp) -> Array | None:
    a, b = (s.slope(v) for v in op.operands)
    return np.asarray(a - b if op.name == "arith.subi" else a + b)


def _product(s: Slopes, op: LaneOp) -> Array | None:
    a, b = op.operands
    if s.moves(a) and s.moves(b):
        return None
    return np.asarray(s.slope(a) * s.data(b) if s.moves(a) else s.data(a) * s.slope(b))


def _shifted_left(s: Slopes, op: LaneOp) -> Array | None:
    value, amount = op.operands
    return None if s.moves(amount) else np.asarray(s.slope(value) << s.data(amount))


def _shifted_right(s: Slopes, op: LaneOp) -> Array | None:
    value, amount = op.operands
    if s.moves(amount):
        return None
    _, slope = s.whole(value, op.name == "arith.shrui")
    by = s.data(amount).astype(np.int64)
    return None if (slope & (1 << by) - 1).any() else (slope >> by).astype(s.data(value).dtype)


def _divided(s: Slopes, op: LaneOp) -> Array | None:
    """Numbers that are not negative, by what does not move, as long as the remainder stays within its bounds."""
    value, divisor = op.operands
    by = s.data(divisor).astype(np.int64)
    if s.moves(divisor) or (by <= 0).any():
        return None
    data, slope = s.whole(value, _row(op).is_unsigned)
    if (data < 0).any() or (s.is_inside() and (slope % by).any()):
        return None
    s.until(np.where(slope < 0, data // np.maximum(1, -slope), FOREVER))
    rest, up = data % by, slope % by
    down = by - up
    rising = int(np.where(up == 0, FOREVER, (by - 1 - rest) // np.maximum(1, up)).min())
    falling = int(np.where(up == 0, FOREVER, rest // down).min())
    s.until(max(rising, falling))
    falls = (up != 0) & (falling > rising)
    quotient, remainder = slope // by + falls, np.where(falls, -down, up)
    return (quotient if "div" in op.name else remainder).astype(s.data(value).dtype)


def _lowest_bits(s: Slopes, op: LaneOp) -> Array | None:
    """`and` with a mask of which the slope is a multiple: bits behind the mask move alone."""
    value, mask = op.operands if s.moves(op.operands[0]) else op.operands[::-1]
    bits = s.data(mask)
    if s.moves(mask) or bits.dtype == np.bool_:
        return None
    slope = s.slope(value)
    lowest = slope & -slope  # of each slope the lowest bit; 0 if it is 0
    return np.zeros_like(slope) if ((lowest == 0) | ((bits >= 0) & (bits < lowest))).all() else None


def _extended(s: Slopes, op: LaneOp) -> Array | None:
    if s.data(op.operands[0]).dtype == np.bool_:
        return None
    _, slope = s.whole(op.operands[0], op.name == "arith.extui")
    return slope.astype(s.data(op.results[0]).dtype)


def _cut(s: Slopes, op: LaneOp) -> Array | None:
    dtype = s.data(op.results[0]).dtype
    return None if dtype == np.bool_ else s.slope(op.operands[0]).astype(dtype)


def _same_bits(s: Slopes, op: LaneOp) -> Array | None:
    data = s.data(op.results[0])
    return s.slope(op.operands[0]) if data.dtype == s.data(op.operands[0]).dtype else None


def _keeps(s: Slopes, a: Value, b: Value, is_unsigned: bool, kind: str) -> None:
    """A comparison has the result that it has now up to the horizon: a < b (`lt`), a <= b (`le`), a == b (`eq`)."""
    (x, x_slope), (y, y_slope) = s.whole(a, is_unsigned), s.whole(b, is_unsigned)
    distance, slope = np.broadcast_arrays(x - y - (kind == "le"), x_slope - y_slope)
    speed = np.maximum(1, abs(slope))
    if kind == "eq":
        if s.is_inside() and slope.any():
            raise _Unproven
        meets = (slope != 0) & (distance % speed == 0) & ((distance == 0) | ((distance < 0) == (slope > 0)))
        s.until(np.where(meets, np.maximum(0, abs(distance) // speed - 1), FOREVER))
        return
    # a - b < 0 until the first period in which it is not, or the other way round.
    left = np.where(distance < 0, (-distance - 1) // speed, distance // speed)
    s.until(np.where(np.where(distance < 0, slope > 0, slope < 0), left, FOREVER))


PREDICATES = ("eq", "eq", "lt", "le", "le", "lt", "lt", "le", "le", "lt")
"""What each predicate of `arith.cmpi` comes to, but for a `not`."""


def _compared(s: Slopes, op: LaneOp) -> Array | None:
    if s.data(op.operands[0]).dtype == np.bool_:
        return None
    predicate = int(op.attrs["predicate"])
    a, b = op.operands
    _keeps(s, a, b, is_unsigned=predicate >= 6, kind=PREDICATES[predicate])
    return np.zeros((1, 1, 1), np.bool_)


def _chosen(s: Slopes, op: LaneOp) -> Array | None:
    condition, a, b = op.operands
    return np.where(s.data(condition), s.slope(a), s.slope(b))


def _outermost(s: Slopes, op: LaneOp) -> Array | None:
    """The larger or smaller one, as long as it is."""
    a, b = op.operands
    _keeps(s, a, b, is_unsigned=_row(op).is_unsigned, kind="lt")
    _keeps(s, a, b, is_unsigned=_row(op).is_unsigned, kind="le")
    return np.where(s.data(op.results[0]) == s.data(a), s.slope(a), s.slope(b))


def _row(op: LaneOp) -> Row:
    return ROWS[op.name]


RULES: Mapping[str, Rule] = {
    "arith.addi": _sum,
    "arith.subi": _sum,
    "arith.muli": _product,
    "arith.shli": _shifted_left,
    "arith.shrsi": _shifted_right,
    "arith.shrui": _shifted_right,
    "arith.divsi": _divided,
    "arith.divui": _divided,
    "arith.remsi": _divided,
    "arith.remui": _divided,
    "arith.andi": _lowest_bits,
    "arith.extsi": _extended,
    "arith.extui": _extended,
    "arith.index_cast": _extended,
    "arith.trunci": _cut,
    "arith.bitcast": _same_bits,
    "arith.cmpi": _compared,
    "select": _chosen,
    "arith.maxsi": _outermost,
    "arith.minsi": _outermost,
    "arith.maxui": _outermost,
    "arith.minui": _outermost,
}


def _renamed(s: Slopes, op: LaneOp) -> Array | None:
    slope = s.slope(op.operands[0])
    return slope if slope.shape[2] == 1 else slope[:, :, list(op.attrs["table"])]


def _joined(s: Slopes, op: LaneOp) -> Array | None:
    parts = [(s.slope(v), v.count) for v in op.operands]
    shape = np.broadcast_shapes(*(x.shape[:2] for x, _ in parts))
    return np.concatenate([np.broadcast_to(x, (*shape, count)) for x, count in parts], axis=2)


MOVES: Mapping[str, Rule] = {"rename": _renamed, "join": _joined}
"""Operations that give registers another order."""
