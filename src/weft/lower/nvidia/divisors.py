"""Find bounds of divisors, so that divisions can leave out the scaling for tiny and huge divisors that do not occur.

    %w: f32 = for ... (%n = 1.0) { %m = arith.addf %n, 1.0 ... yield %m }
    %q: f32x8 = arith.divf %delta, %m {scaled=()}          2 to 2^60: the weight of a Welford reduction
    %e: f32x8 = arith.addf 1.0, math.exp
    %s: f32x8 = arith.divf 1.0, %e {scaled=('huge',)}      1 to infinity: the divisor of a sigmoid

`rcp.approx.ftz` returns 0 for numbers beyond 2^126 and infinity for those below 2^-126, so a division scales such
divisors, and the dividend too: six instructions of eight. A weight needs none of them, a sigmoid half.

A loop-carried number is assumed to stay at its initial value or above, until that is refuted. A sum is rounded as the
GPU rounds it, so that a count by ones has a bound, however many iterations there are: 2^60 + 1 is 2^60. A NaN may be
among the numbers everywhere: a quotient by it is NaN, whatever else is done.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from weft.ir.lane import LaneProgram, Value

Range = tuple[float, float]
"""The least and the greatest number that a value may be, if it is not NaN."""

LEAST, MOST = 2.0**-126, 2.0**126
"""Between which numbers a divisor is a normal number, and its reciprocal as well."""
ANY: Range = (-math.inf, math.inf)
POSITIVE: Range = (0.0, math.inf)
LARGE = 2.0**60
"""What a carried number is assumed not to exceed, at first."""
DEEPEST = 40
"""Operations behind each other that are looked through."""
MOST_VALUES = 2000
"""Values that are looked at for one program."""
NOT_NEGATIVE = frozenset(
    ("math.exp", "math.exp2", "math.sqrt", "math.absf", "libdevice.__nv_expf", "libdevice.__nv_exp2f")
)
PASSED_ON = ("rename", "shuffle")


def bound_divisors(program: LaneProgram) -> None:
    """Say of each quotient of f32 by no constant what its divisor may be: attribute `scaled`."""
    quotients = [op for op in program.body.walk() if op.name == "arith.divf" and op.result.elem == "f32"]
    ranges = _Ranges(program)
    for op in quotients:
        low, high = ranges.of(op.operands[1])
        if low < high and not op.attrs.get("precise"):
            tiny = ("tiny",) if low < LEAST and high > -LEAST else ()
            op.attrs["scaled"] = (*tiny, "huge") if low < -MOST or high > MOST else tiny


class _Ranges:
    """Answers, kept."""

    def __init__(self, program: LaneProgram) -> None:
        self._program = program
        self._loops: dict[Value, tuple[Value, Value]] | None = None
        self._known: dict[Value, Range] = {}
        self._left = MOST_VALUES

    def of(self, value: Value, depth: int = 0) -> Range:
        """Between which numbers a value lies."""
        known = self._known.get(value)
        if known is None:
            self._left -= 1
            if depth > DEEPEST or self._left < 0:
                return ANY
            around = self._carried().get(value) if value.op is None else None
            known = self._around(value, *around, depth + 1) if around else self._computed(value, depth + 1)
            self._known[value] = known
        return known

    def _carried(self) -> dict[Value, tuple[Value, Value]]:
        """What loops carry: what it is at first, and what it is after an iteration."""
        if self._loops is None:
            self._loops = {}
            for op in self._program.body.walk():
                if op.name == "for" and op.results:
                    body = op.regions[0]
                    around = zip(op.operands[3:], body.ops[-1].operands, strict=True)
                    self._loops |= zip(body.arguments[1:], around, strict=True)
        return self._loops

    def _around(self, value: Value, initial: Value, last: Value, depth: int) -> Range:
        """What a loop carries in a value."""
        first = self.of(initial, depth)
        for assumed in ((first[0], LARGE), POSITIVE):
            if first[0] < max(0.0, assumed[0]) or first[1] > assumed[1]:
                continue
            before = dict(self._known)
            self._known[value] = assumed
            low, high = self.of(last, depth)
            if assumed[0] <= low and high <= assumed[1]:
                return assumed
            self._known = before  # what was concluded from it is not known
        return ANY

    def _computed(self, value: Value, depth: int) -> Range:
        op = value.op
        if op is None or value.elem != "f32":
            return ANY
        if op.name == "for":
            return self.of(op.regions[0].arguments[1 + op.results.index(value)], depth)
        if op.name == "constant":
            number = float(op.attrs["value"])
            return ANY if math.isnan(number) else (number, number)
        if op.name in NOT_NEGATIVE:
            return POSITIVE
        if op.name in PASSED_ON:
            return self.of(op.operands[0], depth)
        if op.name == "arith.mulf" and op.operands[0] is op.operands[1]:
            return POSITIVE
        combine = COMBINED.get(op.name)
        if combine is None:
            return ANY
        a, b = (self.of(x, depth) for x in op.operands[-2:])
        return combine(a, b)


def _sum(a: Range, b: Range) -> Range:
    """Rounding keeps the order of numbers, so bounds are added as numbers are."""
    with np.errstate(all="ignore"):
        low, high = (float(np.float32(x) + np.float32(y)) for x, y in zip(a, b, strict=True))
    return ANY if math.isnan(low) or math.isnan(high) else (low, high)


def _product(a: Range, b: Range) -> Range:
    return POSITIVE if a[0] >= 0 and b[0] >= 0 else ANY


def _either(a: Range, b: Range) -> Range:
    """The range of a number that is in one of two ranges, as if one of them may be NaN."""
    return min(a[0], b[0]), max(a[1], b[1])


def _largest(a: Range, b: Range) -> Range:
    """The larger number, or the only one: not below a constant, which is no NaN."""
    constants = [x for x, y in (a, b) if x == y]
    return max([min(a[0], b[0]), *constants]), max(a[1], b[1])


COMBINED: dict[str, Callable[[Range, Range], Range]] = {
    "arith.addf": _sum,
    "arith.mulf": _product,
    "select": _either,
    "arith.maximumf": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "arith.minimumf": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "arith.maxnumf": _largest,
    "arith.minnumf": _either,
}
"""What an operation makes of the ranges of its last two operands."""
