"""The integers of a kernel that are known without running it, at a few places of each tile.

    %o = tt.make_range 0 to 1024             numbers 0, 1, 512, 1023 at the places 0, 1, 512, 1023
    %s = tt.splat %c4194304                  4194304 at each of them
    %p = arith.muli %o, %s                   0, 4194304, -2147483648, -4194304; the last two have wrapped

What is computed is what program (0, 0, 0) computes, which is in every grid, in the first iteration of each loop or,
with `last`, in the last one of those whose bounds are known. The places of an axis are its first two, its middle and
its last: a sum of multiples of indices is largest and smallest at ends of axes. What rests on an argument, on memory or
on the size of the grid is not known.

A number that has wrapped stays marked, with what it would be exactly, through sums, products and changes of shape;
after anything else (a remainder, bits, a comparison) wrapping counts as meant, as in a hash.

Not done here: values after loops, `while`, reshape, join.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from weft.base import registry
from weft.ir import bit_width, element_of, int_value, is_tensor, shape_of, splat_value
from weft.ops.casts import COMPARISONS, INTEGER_PREDICATES
from weft.ops.table import ROWS

from .operands import DEEP, operands_first

_MOST = 4
"""Operations that are remembered of one value as having wrapped."""
Numbers = np.ndarray[Any, Any]
Places = Callable[[int], Sequence[int]]


def some_places(size: int) -> Sequence[int]:
    """The places of an axis that are looked at.

    >>> some_places(1024)
    (0, 1, 512, 1023)
    """
    return range(size) if size <= 4 else (0, 1, size // 2, size - 1)


@dataclass(frozen=True, slots=True)
class Wrap:
    """Where a value has wrapped: `where` is true there, `exact` what it would be, `op` what it wrapped in."""

    op: Operation
    where: Numbers
    exact: Numbers
    signed: bool


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a value: its numbers, None if not known; and what of it has wrapped."""

    numbers: Numbers | None = None
    wraps: tuple[Wrap, ...] = ()


_NOTHING = Known()


class Samples:
    """Evaluates values when asked for, and keeps them."""

    def __init__(self, places: Places = some_places, *, last: bool = False) -> None:
        self.places = places
        self.last = last
        self._samples: dict[tuple[SSAValue, bool], Known] = {}
        self._depth = 0

    def of(self, value: SSAValue, signed: bool = True) -> Known:
        """What is known of a value; `signed` says how its bits are read."""
        key = value, signed
        samples = self._samples.get(key)
        if samples is None:
            self._samples[key] = _NOTHING  # around a loop
            self._depth += 1
            if self._depth == DEEP and isinstance(value, OpResult):
                for first in operands_first(value, lambda x: (x, signed) not in self._samples and x.op.name in _RULES):
                    self.of(first, signed)
            samples = self._argument(value) if isinstance(value, BlockArgument) else self._result(value, signed)
            self._depth -= 1
            self._samples[key] = samples
        return samples

    def reached(self, op: Operation) -> bool:
        """Whether an operation may run, as far as conditions and bounds are known."""
        block = op.parent
        parent = block.parent_op() if block is not None else None
        while parent is not None and block is not None:
            if parent.name == "scf.if":
                condition = self.of(parent.operands[0]).numbers
                if condition is not None and bool(condition) != (block.parent is parent.regions[0]):
                    return False
            elif parent.name == "scf.for" and self._iterations(parent) == 0:
                return False
            block = parent.parent
            parent = block.parent_op() if block is not None else None
        return True

    def may_hold(self, mask: SSAValue | None, shape: Sequence[int]) -> Numbers:
        """Where a mask of a tile of `shape` is true or not known."""
        whole = np.ones([len(self.places(n)) for n in shape], bool)
        if mask is None:
            return whole
        if isinstance(mask.owner, Operation) and mask.owner.name == "arith.andi":
            left, right = mask.owner.operands
            return self.may_hold(left, shape) & self.may_hold(right, shape)
        numbers = self.of(mask).numbers
        return whole if numbers is None else whole & (numbers != 0)

    def sampled(self, value: SSAValue) -> tuple[int, ...]:
        """How many places are looked at along each axis of a value."""
        return tuple(len(self.places(n)) for n in shape_of(value.type)) if is_tensor(value.type) else ()

    def _result(self, value: SSAValue, signed: bool) -> Known:
        op = value.owner
        assert isinstance(op, Operation)
        rule = _RULES.get(op.name)
        return rule(self, op, value, signed) if rule is not None else _NOTHING

    # -- loops ---------------------------------------------------------------------------------------------------

    def _argument(self, value: BlockArgument) -> Known:
        block = value.block
        loop = block.parent_op()
        if loop is None or loop.name != "scf.for":
            return _NOTHING
        iterations = self._iterations(loop) if self.last else None
        if value.index == 0:
            first = self.of(loop.operands[0])
            step = self.of(loop.operands[2]).numbers
            if not iterations or first.numbers is None or step is None:
                return first
            return Known(first.numbers + (iterations - 1) * step)
        first = self.of(loop.operands[2 + value.index])
        return first if not iterations or iterations == 1 else self._carried(value, block, first, iterations)

    def _iterations(self, loop: Operation) -> int | None:
        """How often a loop runs."""
        bounds = [self.of(operand).numbers for operand in loop.operands[:3]]
        if any(b is None for b in bounds):
            return None
        lower, upper, step = (int(b) for b in bounds)  # type: ignore[arg-type]
        return max(0, -(-(upper - lower) // step)) if step > 0 else None

    def _carried(self, value: BlockArgument, block: Block, first: Known, iterations: int) -> Known:
        """A carried value in the last iteration, where every iteration adds the same to it."""
        end = block.last_op
        after = end.operands[value.index - 1].owner if end is not None else None
        if first.numbers is None or not isinstance(after, Operation) or after.name != "arith.addi":
            return _NOTHING
        others = [operand for operand in after.operands if operand is not value]
        if len(others) != 1 or not _invariant(others[0], block):
            return _NOTHING
        step = self.of(others[0]).numbers
        if step is None:
            return _NOTHING
        return _fitted(after, value, first.numbers + (iterations - 1) * step, True, first.wraps)


def _invariant(value: SSAValue, body: Block) -> bool:
    """Whether a value is the same in every iteration of a loop."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner is not body
    return owner.parent is not body or (owner.name in _RULES and all(_invariant(v, body) for v in owner.operands))


def _width(value: SSAValue) -> int:
    element = element_of(value.type)
    return bit_width(element) if isinstance(element, IntegerType) else 64


def _limits(width: int, signed: bool) -> tuple[int, int]:
    return (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)


def _as_width(numbers: Numbers, width: int, signed: bool) -> Numbers:
    """Numbers taken modulo 2^width."""
    if width >= 64:
        return numbers
    low = numbers & ((1 << width) - 1)
    return np.where(low >> (width - 1) != 0, low - (1 << width), low) if signed and width > 1 else low


def _fitted(op: Operation, value: SSAValue, exact: Numbers, signed: bool, wraps: tuple[Wrap, ...]) -> Known:
    """A result that is `exact` before it is cut to the width of its type."""
    width = _width(value)
    if width >= 64:
        return Known(exact, wraps)
    low, high = _limits(width, signed)
    if width == 1 or (low <= exact.min() and exact.max() <= high):
        return Known(exact & 1 if width == 1 else exact, wraps)
    wrap = Wrap(op, (exact < low) | (exact > high), exact, signed)
    return Known(_as_width(exact, width, signed), (*wraps, wrap))


# -- rules -------------------------------------------------------------------------------------------------------

Rule = Callable[[Samples, Operation, SSAValue, bool], Known]
_RULES: dict[str, Rule] = {}


_rule = registry(_RULES)


@_rule("arith.constant")
def _constant(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    number = splat_value(op.properties["value"])
    width = _width(value)
    if not isinstance(number, int) or not isinstance(element_of(value.type), IntegerType) or width > 64:
        return _NOTHING
    low, high = _limits(64, True)
    if not low <= number <= high:
        return _NOTHING
    return Known(_as_width(np.full(samples.sampled(value), number, np.int64), width, signed))


@_rule("tt.make_range")
def _range(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    start = int_value(op.properties["start"])
    return Known(np.array(samples.places(shape_of(value.type)[0]), np.int64) + start)


@_rule("tt.get_program_id")
def _program(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    return Known(np.zeros((), np.int64))


def _moved(samples: Known, change: Callable[[Numbers], Numbers]) -> Known:
    """The same elements elsewhere."""
    wraps = tuple(Wrap(w.op, change(w.where), change(w.exact), w.signed) for w in samples.wraps)
    return Known(None if samples.numbers is None else change(samples.numbers), wraps)


@_rule("tt.splat", "tt.broadcast")
def _broadcast(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    shape = samples.sampled(value)

    def spread(numbers: Numbers) -> Numbers:  # `np.broadcast_to` takes longer than to copy a few
        copies = np.empty(shape, numbers.dtype)
        copies[...] = numbers
        return copies

    return _moved(samples.of(op.operands[0], signed), spread)


@_rule("tt.expand_dims")
def _expand(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    axis = int_value(op.properties["axis"])
    return _moved(samples.of(op.operands[0], signed), lambda numbers: np.expand_dims(numbers, axis))


@_rule("tt.trans")
def _trans(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    order: Any = op.properties["order"]
    axes = [int(v) for v in order.get_values()]
    return _moved(samples.of(op.operands[0], signed), lambda numbers: np.transpose(numbers, axes))


@_rule("tt.addptr")
def _pointer(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    return Known(None, _merged(samples.of(op.operands[0]).wraps, samples.of(op.operands[1]).wraps))


def _merged(a: tuple[Wrap, ...], b: tuple[Wrap, ...]) -> tuple[Wrap, ...]:
    """What has wrapped in either; each operation once, and no more than a few."""
    if not a or not b:
        return a or b
    by_op = {w.op: w for w in a}
    for w in b:
        old = by_op.get(w.op)
        new = w if old is None else Wrap(w.op, old.where | w.where, np.where(old.where, old.exact, w.exact), w.signed)
        by_op[w.op] = new
    return tuple(by_op.values())[:_MOST]


@_rule("arith.extsi", "arith.index_cast")
def _extend(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    source = samples.of(op.operands[0], True)
    if _width(op.operands[0]) == 1:
        return Known(None if source.numbers is None else -source.numbers)
    return source if signed or source.numbers is None else Known(_as_width(source.numbers, _width(value), False))


@_rule("arith.extui")
def _extend_unsigned(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    return samples.of(op.operands[0], False)


@_rule("arith.trunci")
def _cut(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    numbers = samples.of(op.operands[0], signed).numbers
    return _NOTHING if numbers is None else Known(_as_width(numbers, _width(value), signed))


_LINEAR = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")
_OTHERS = tuple(name for name, row in ROWS.items() if row.of_integers is not None and name not in _LINEAR)


def _largest(numbers: Numbers) -> int:
    return max(abs(int(numbers.min())), abs(int(numbers.max())))


@_rule(*_LINEAR)
def _linear(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    a, b = samples.of(op.operands[0], signed), samples.of(op.operands[1], signed)
    wraps = _merged(a.wraps, b.wraps)
    if a.numbers is None or b.numbers is None:
        return Known(None, wraps)
    factor = 1 << min(62, _largest(b.numbers)) if op.name == "arith.shli" else _largest(b.numbers)
    if _largest(a.numbers) * max(1, factor) + factor >= 1 << 63:  # more than this arithmetic holds
        return Known(None, wraps)
    meaning = ROWS[op.name].of_integers
    assert meaning is not None
    return _fitted(op, value, meaning(a.numbers, b.numbers, _width(value)), signed, wraps)


@_rule(*_OTHERS)
def _other(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    row = ROWS[op.name]
    how = not row.is_unsigned
    a, b = samples.of(op.operands[0], how).numbers, samples.of(op.operands[1], how).numbers
    if row.of_integers is None or a is None or b is None or (row.wrong == "divisor" and not b.all()):
        return _NOTHING
    if not how and _width(value) >= 64 and min(a.min(), b.min()) < 0:
        return _NOTHING
    return Known(_as_width(np.asarray(row.of_integers(a, b, _width(value))), _width(value), signed))


@_rule("arith.cmpi")
def _compare(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    predicate = INTEGER_PREDICATES[int_value(op.properties["predicate"])]
    how = predicate[0] != "u"
    a, b = samples.of(op.operands[0], how).numbers, samples.of(op.operands[1], how).numbers
    if a is None or b is None or (not how and _width(op.operands[0]) >= 64 and min(a.min(), b.min()) < 0):
        return _NOTHING
    return Known(np.asarray(COMPARISONS[predicate](a, b)).astype(np.int64))


@_rule("arith.select")
def _select(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    condition = samples.of(op.operands[0]).numbers
    if condition is None:
        return _NOTHING
    a, b = samples.of(op.operands[1], signed), samples.of(op.operands[2], signed)
    where = condition != 0
    chosen = tuple(Wrap(w.op, w.where & where, w.exact, w.signed) for w in a.wraps)
    others = tuple(Wrap(w.op, w.where & ~where, w.exact, w.signed) for w in b.wraps)
    both = a.numbers is not None and b.numbers is not None
    return Known(np.where(where, a.numbers, b.numbers) if both else None, _merged(chosen, others))  # type: ignore[arg-type]


@_rule("scf.if")
def _branch(samples: Samples, op: Operation, value: SSAValue, signed: bool) -> Known:
    condition = samples.of(op.operands[0]).numbers
    if condition is None:
        return _NOTHING
    region = op.regions[0 if bool(condition) else 1]
    end = region.blocks[0].last_op if region.blocks else None
    index: int = value.index  # type: ignore[attr-defined]
    return samples.of(end.operands[index], signed) if end is not None else _NOTHING
