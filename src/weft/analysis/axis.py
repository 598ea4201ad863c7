"""Facts about integers and pointers in a tile, along each of its dimensions: what vectors and predicates rest on.

    contiguity    the tile falls into aligned runs of this many elements, each one more than the one before
    divisibility  the first element of each such run is a multiple of this (of so many bytes, for a pointer)
    constancy     the tile falls into aligned runs of this many equal elements

All three are powers of two, and are lower bounds: 1 says nothing. The analysis, with these names, is Triton's
(lib/Analysis/AxisInfo); its soundness is tested against concrete values. They are facts about how the elements of a
tile lie beside each other, and so have rules of their own; what is known of one integer for itself is in the table of
operations (`ops/bounds.py`), which gives the numbers here.

>>> from weft.analysis import Facts
>>> Facts((8,), (16,), (1,)) | Facts((4,), (32,), (1,))
Facts(contiguity=(4,), divisibility=(4,), constancy=(1,), value=None)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from weft.base import each_once, registry
from weft.ir import bit_width, element_of, int_value, is_pointer, is_tensor, pointee_of, shape_of, splat_value
from weft.ops.bounds import MOST, Bounds, any_of, fitted, two_part
from weft.ops.table import ELEMENTWISE, ROWS, bounds_of

from .operands import DEEP, operands_first

__all__ = ["AxisFacts", "Facts"]

PASSING_SIGNS = ("arith.addi", "arith.extsi", "arith.trunci", "tt.splat", "tt.expand_dims", "tt.broadcast", "tt.trans",
                 "ttg.convert_layout")  # fmt: skip
"""What subtracts where what it is made of does. Multiples of what is left of numbers of programs are taken to be so
many that they are not negative."""


@dataclass(frozen=True)
class Facts:
    """What is known of one value; a scalar is a tile of one dimension of size 1."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    value: int | None = None
    """The number itself, where all elements are one known number."""

    def __or__(self, other: Facts) -> Facts:
        """What holds of either."""
        contiguity = _least(self.contiguity, other.contiguity)
        return Facts(
            contiguity,
            _least(self._of_runs(contiguity), other._of_runs(contiguity)),
            _least(self.constancy, other.constancy),
            self.value if self.value == other.value else None,
        )

    def _of_runs(self, contiguity: tuple[int, ...]) -> tuple[int, ...]:
        """What divides the first element of each of these runs."""
        runs = zip(self.divisibility, contiguity, self.contiguity, strict=True)
        return tuple(_limited(divisibility, run, longest) for divisibility, run, longest in runs)


def _least(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    return tuple(min(x, y) for x, y in zip(a, b, strict=True))


class AxisFacts:
    """The facts of values, computed when asked for and kept."""

    def __init__(self) -> None:
        self._facts: dict[SSAValue, Facts] = {}
        self._open: set[SSAValue] = set()
        self._cut = 0
        """How often the facts of a value were asked for while they were being found."""

    def of(self, value: SSAValue) -> Facts:
        """The facts of a value."""
        facts = self._facts.get(value)
        if facts is None:
            if value in self._open:  # around a loop
                self._cut += 1
                return _unknown(value)
            self._open.add(value)
            cut = self._cut
            if len(self._open) == DEEP and isinstance(value, OpResult):
                for first in operands_first(value, self._is_unknown):
                    self.of(first)
            facts = self._argument(value) if isinstance(value, BlockArgument) else self._result(value)
            self._open.discard(value)
            if cut == self._cut or not self._open:
                self._facts[value] = facts
        return facts

    def _is_unknown(self, value: OpResult) -> bool:
        return value not in self._facts and value not in self._open and _rule_of(value.op) is not None

    def _argument(self, value: BlockArgument) -> Facts:
        block = value.block
        parent = block.parent_op()
        if parent is None:
            return _unknown(value)
        if parent.name == "tt.func":
            return _parameter(parent, value)
        if parent.name == "scf.for":
            if not value.index:
                return self._induction(parent, value)
            return self._carried(parent.operands[2 + value.index], block, value.index - 1, value)
        if parent.name == "scf.while":
            return self._of_while(parent, block, value)
        if parent.name == "ttg.warp_specialize.partitions":
            branch = parent.parent_op()
            return self.of(branch.operands[value.index]) if branch is not None else _unknown(value)
        return _unknown(value)

    def _induction(self, loop: Operation, value: SSAValue) -> Facts:
        lower, step = self.of(loop.operands[0]), self.of(loop.operands[2])
        return Facts((1,), (min(lower.divisibility[0], step.divisibility[0]),), (1,))

    def _of_while(self, loop: Operation, block: Block, value: BlockArgument) -> Facts:
        """What the condition is computed from is carried; what is done with it holds what the condition hands on."""
        before, after = (r.blocks[0] for r in loop.regions)
        if block is before:
            return self._carried(loop.operands[value.index], after, value.index, value)
        assert before.last_op is not None
        return self.of(before.last_op.operands[1 + value.index])

    def _carried(self, initial: SSAValue, block: Block, index: int, value: SSAValue) -> Facts:
        """A carried value: what holds initially and after each iteration, tried until it holds of itself."""
        first = self.of(initial)
        guess = first
        last = block.last_op
        for _ in range(8):
            trial = AxisFacts()
            trial._facts = {**self._facts, value: guess}
            after = trial.of(last.operands[index]) if last is not None else guess
            joined = guess | after
            if joined == guess:
                return guess
            guess = joined
        return _unknown(value)

    def _result(self, value: SSAValue) -> Facts:
        op = value.owner
        assert isinstance(op, Operation)
        if op.name in ("scf.for", "scf.if", "scf.while", "ttg.warp_specialize"):
            return self._of_region(op, list(op.results).index(value))  # type: ignore[arg-type]
        rule = _rule_of(op)
        facts = rule(self, op, value) if rule is not None else _unknown(value)
        return self._hinted(op, self._numbered(op, facts, value))

    def _numbered(self, op: Operation, facts: Facts, value: SSAValue) -> Facts:
        """With the number that an element-wise operation gives, where those of its operands are known."""
        row = ROWS.get(op.name)
        if row is None or row.bounds is None:
            return facts
        operands = list[Facts]()
        for x in op.operands:
            operands.append(self.of(x))
            if operands[-1].value is None:
                return facts
        number = _element(op, value, operands, 0)
        is_number = number.low == number.high
        return _uniform(value, number.low, two_part(number.low)) if is_number else replace(facts, value=None)

    def _of_region(self, op: Operation, index: int) -> Facts:
        if op.name == "scf.for":
            return self.of(op.regions[0].blocks[0].args[index + 1])
        if op.name == "scf.while" and (condition := op.regions[0].blocks[0].last_op) is not None:
            return self.of(condition.operands[1 + index])
        if op.name == "scf.if" and all(r.blocks for r in op.regions):
            ends = [r.blocks[0].last_op for r in op.regions]
            facts = [self.of(e.operands[index]) for e in ends if e is not None]
            return facts[0] | facts[1]
        if op.name == "ttg.warp_specialize" and (end := op.regions[0].blocks[0].last_op) is not None:
            return self.of(end.operands[index])
        return _unknown(op.results[index])

    def _hinted(self, op: Operation, facts: Facts) -> Facts:
        """What the user said: multiple_of, max_contiguous, max_constancy."""
        if not op.attributes:
            return facts
        for name, field in (
            ("tt.divisibility", "divisibility"),
            ("tt.contiguity", "contiguity"),
            ("tt.constancy", "constancy"),
        ):
            hint = op.attributes.get(name)
            if hint is not None:
                numbers = [int(x) for x in _numbers(hint)]
                if len(numbers) == 1:  # equal ones are kept as one
                    numbers *= len(facts.contiguity)
                parts = {f: getattr(facts, f) for f in ("contiguity", "divisibility", "constancy")}
                if len(numbers) == len(parts[field]):
                    parts[field] = tuple(max(a, two_part(b)) for a, b in zip(parts[field], numbers, strict=True))
                    facts = Facts(**parts, value=facts.value)
        return facts


def _numbers(attr: Any) -> list[int]:
    if hasattr(attr, "get_values"):
        return [int(v) for v in attr.get_values()]
    return [int_value(attr)] if isinstance(attr, IntegerAttr) else []


def _rank(value: SSAValue) -> int:
    return max(1, len(shape_of(value.type))) if is_tensor(value.type) else 1


def _unknown(value: SSAValue) -> Facts:
    one = (1,) * _rank(value)
    return Facts(one, one, one)


def _parameter(function: Operation, value: BlockArgument) -> Facts:
    attrs = function.properties.get("arg_attrs", function.attributes.get("arg_attrs"))
    entry = list(attrs)[value.index] if attrs is not None else None  # type: ignore[call-overload]
    hint = entry.data.get("tt.divisibility") if entry is not None else None
    return Facts((1,), (int_value(hint) if hint is not None else 1,), (1,))


Rule = Callable[[AxisFacts, Operation, SSAValue], Facts]
RULES: dict[str, Rule] = {}


_rule = registry(RULES)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tuple(shape_of(value.type)) if is_tensor(value.type) else (1,)


def _uniform(value: SSAValue, number: int | None, divisibility: int) -> Facts:
    shape = _shape(value)
    return Facts((1,) * len(shape), (divisibility,) * len(shape), shape, number)


@_rule("arith.constant")
def _constant(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    attr: Any = op.properties["value"] if "value" in op.properties else op.attributes["value"]
    if not isinstance(element_of(value.type), IntegerType):
        return _uniform(value, None, 1) if splat_value(attr) is not None else _unknown(value)
    if isinstance(attr, IntegerAttr):
        return _uniform(value, int_value(attr), two_part(int_value(attr)))
    numbers = _numbers(attr)
    if numbers and all(n == numbers[0] for n in numbers):
        return _uniform(value, numbers[0], two_part(numbers[0]))
    return _unknown(value)


@_rule("tt.make_range")
def _range(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    start = int_value(op.properties["start"])
    size = _shape(value)[0]
    return Facts((size,), (two_part(start),), (1,))


@_rule("tt.splat", "tt.unsplat")
def _splat(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    source = facts.of(op.operands[0])
    return _uniform(value, source.value, min(source.divisibility))


@_rule("tt.expand_dims")
def _expand(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    source = facts.of(op.operands[0])
    axis = int_value(op.properties["axis"])

    def with_one(parts: tuple[int, ...], one: int) -> tuple[int, ...]:
        return (*parts[:axis], one, *parts[axis:])

    if not is_tensor(op.operands[0].type):
        return _unknown(value)
    whole = min(source.divisibility) if all(c == 1 for c in source.contiguity) else _of_each(source)
    return Facts(
        with_one(source.contiguity, 1),
        with_one(source.divisibility, whole),
        with_one(source.constancy, 1),
        source.value,
    )


def _of_each(source: Facts) -> int:
    """What divides every element, not only the first of each run."""
    return min(1 if c > 1 else d for c, d in zip(source.contiguity, source.divisibility, strict=True))


@_rule("tt.broadcast")
def _broadcast(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    source = facts.of(op.operands[0])
    before, after = _shape(op.operands[0]), _shape(value)
    grown = [b != a for b, a in zip(before, after, strict=True)]
    return Facts(
        tuple(1 if g else c for g, c in zip(grown, source.contiguity, strict=True)),
        source.divisibility,
        tuple(a if g else c for g, a, c in zip(grown, after, source.constancy, strict=True)),
        source.value,
    )


@_rule("tt.load")
def _load(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    """What is loaded from equal addresses under equal masks is equal: the index of an embedding, for a whole row."""
    if "isVolatile" in op.properties and int_value(op.properties["isVolatile"]):
        return _unknown(value)
    one = (1,) * _rank(value)
    return Facts(one, one, reduce(_least, (facts.of(x).constancy for x in op.operands)))


@_rule("ttg.convert_layout")
def _convert(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    return facts.of(op.operands[0])


@_rule("tt.trans")
def _trans(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    source = facts.of(op.operands[0])
    order = _numbers(op.properties["order"])

    def moved(parts: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(parts[i] for i in order)

    return Facts(moved(source.contiguity), moved(source.divisibility), moved(source.constancy), source.value)


@_rule("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "tt.bitcast", "arith.bitcast")
def _cast(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    if is_pointer(element_of(value.type)) != is_pointer(element_of(op.operands[0].type)):
        return _unknown(value)
    source = facts.of(op.operands[0])
    narrow = bit_width(element_of(value.type)) if isinstance(element_of(value.type), IntegerType) else 64
    one = (1,) * _rank(value)
    if op.name == "arith.trunci" and narrow < 32:
        whole = (1 if c > 1 else d for c, d in zip(source.contiguity, source.divisibility, strict=True))
        return Facts(one, tuple(min(d, 1 << narrow) for d in whole), source.constancy)
    if op.name in ("arith.extsi", "arith.extui") and bit_width(element_of(op.operands[0].type)) == 1:
        return Facts(one, one, source.constancy)
    if op.name == "arith.extui":  # from -1 to 0 is a long way now: aligned runs do not go it
        return Facts(_least(source.contiguity, source.divisibility), source.divisibility, source.constancy)
    return source


def _sum(a: Facts, b: Facts, scale: int = 1) -> Facts:
    """a + b, or a pointer plus `scale` bytes times b."""
    contiguity = tuple(
        max(min(ca, kb), min(ka, cb))
        for ca, ka, cb, kb in zip(a.contiguity, a.constancy, b.contiguity, b.constancy, strict=True)
    )
    divisibility = tuple(
        min(x, _limited(y, c, cy) * scale if scale > 1 else _limited(y, c, cy))
        for x, y, c, cy in zip(
            (_limited(d, c, ca) for d, c, ca in zip(a.divisibility, contiguity, a.contiguity, strict=True)),
            b.divisibility,
            contiguity,
            b.contiguity,
            strict=True,
        )
    )
    return Facts(contiguity, divisibility, _least(a.constancy, b.constancy))


def _limited(divisibility: int, run: int, own_run: int) -> int:
    """What divides the first element of each run of `run`, if it divides that of each run of `own_run`."""
    return divisibility if run >= own_run else min(divisibility, run)


@_rule("arith.addi")
def _add(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    return _sum(facts.of(op.operands[0]), facts.of(op.operands[1]))


@_rule("tt.addptr")
def _add_pointer(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    pointer = element_of(value.type)
    size = max(1, bit_width(pointee_of(pointer)) // 8)
    return _sum(facts.of(op.operands[0]), facts.of(op.operands[1]), size)


@_rule("arith.subi")
def _subtract(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    a, b = facts.of(op.operands[0]), facts.of(op.operands[1])
    plain = _sum(a, Facts((1,) * len(b.contiguity), b.divisibility, b.constancy))
    steady = tuple(min(d, 1 if c > 1 else MOST) for d, c in zip(plain.divisibility, b.contiguity, strict=True))
    return Facts(plain.contiguity, steady, plain.constancy)


@_rule("arith.muli")
def _multiply(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    a, b = facts.of(op.operands[0]), facts.of(op.operands[1])
    return a if b.value == 1 else b if a.value == 1 else _elementwise(facts, op, value)


@_rule("arith.divsi", "arith.divui")
def _divide(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    return _quotient(facts.of(op.operands[0]), facts.of(op.operands[1]), _shape(value), _goes_below_zero(facts, op))


def _goes_below_zero(facts: AxisFacts, op: Operation) -> bool:
    """Whether a signed dividend is consecutive numbers less something: -16 // 16 is -1, but -15 // 16 is 0."""
    if op.name not in ("arith.divsi", "arith.remsi"):
        return False
    rest = [op.operands[0]]
    for value in each_once(rest):
        number, by = facts.of(value).value, value.owner
        if number is not None:
            if number < 0:
                return True
        elif isinstance(by, Operation):
            if by.name == "arith.subi":
                return True
            rest += by.operands if by.name in PASSING_SIGNS else ()
    return False


def _of_multiples(a: Facts) -> Facts:
    """What holds of each element, and not of runs."""
    whole = tuple(1 if c > 1 else d for c, d in zip(a.contiguity, a.divisibility, strict=True))
    return Facts((1,) * len(whole), whole, a.constancy, a.value)


def _quotient(a: Facts, b: Facts, shape: tuple[int, ...], negative: bool = False) -> Facts:
    """Runs of what divides one divisor have one quotient; a multiple, divided by a power of two, is a smaller one."""
    if b.value == 1:
        return a
    a = _of_multiples(a) if negative else a
    least = _least(a.constancy, b.constancy)
    if b.value is not None and b.value <= 0:
        return Facts((1,) * len(least), (1,) * len(least), least)
    d = two_part(b.value) if b.value is not None else _of_each(b)
    constancy = tuple(
        max(k, min(c, div, d)) if kb == s else k
        for c, div, k, kb, s in zip(a.contiguity, a.divisibility, least, b.constancy, shape, strict=True)
    )
    if b.value is None or b.value != two_part(b.value):
        return Facts((1,) * len(least), (1,) * len(least), constancy)
    divisibility = tuple(1 if c > 1 else max(1, div // d) for c, div in zip(a.contiguity, a.divisibility, strict=True))
    return Facts((1,) * len(least), divisibility, constancy)


@_rule("arith.remsi", "arith.remui")
def _remainder(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    a = facts.of(op.operands[0])
    a = _of_multiples(a) if _goes_below_zero(facts, op) else a
    return _rest(a, facts.of(op.operands[1]), _shape(value))


def _rest(a: Facts, b: Facts, shape: tuple[int, ...]) -> Facts:
    d = _of_each(b)
    contiguity = tuple(
        min(c, div, d) if k == s else 1
        for c, div, k, s in zip(a.contiguity, a.divisibility, b.constancy, shape, strict=True)
    )
    divisibility = tuple(
        min(_limited(x, run, c), d) for x, run, c in zip(a.divisibility, contiguity, a.contiguity, strict=True)
    )
    return Facts(contiguity, divisibility, _least(a.constancy, b.constancy))


@_rule("arith.cmpi")
def _compare(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    """Consecutive numbers against one number: aligned runs fall on one side, if the number is a multiple of them."""
    a, b = facts.of(op.operands[0]), facts.of(op.operands[1])
    predicate = int_value(op.properties["predicate"])
    constancy = list(_least(a.constancy, b.constancy))
    if predicate in (2, 5, 6, 9):  # slt sge ult uge: a multiple on the right is where the side changes
        for i, (c, d, k) in enumerate(zip(a.contiguity, a.divisibility, b.constancy, strict=True)):
            constancy[i] = max(constancy[i], min(c, d, b.divisibility[i], k))
    if predicate in (3, 4, 7, 8):  # sle sgt ule ugt: the same with the sides exchanged
        for i, (c, d, k) in enumerate(zip(b.contiguity, b.divisibility, a.constancy, strict=True)):
            constancy[i] = max(constancy[i], min(c, d, a.divisibility[i], k))
    one = (1,) * len(constancy)
    return Facts(one, one, tuple(constancy))


@_rule("arith.shli", "arith.shrsi", "arith.shrui")
def _shift(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    """By a known number, a product with a power of two or a quotient."""
    a, b = facts.of(op.operands[0]), facts.of(op.operands[1])
    if b.value is None or not 0 <= b.value < min(31, bit_width(element_of(value.type))):
        return _elementwise(facts, op, value)
    if op.name == "arith.shli":
        return a if b.value == 0 else _elementwise(facts, op, value)
    power = Facts((1,) * len(b.contiguity), (1 << b.value,) * len(b.contiguity), _shape(value), 1 << b.value)
    return _quotient(a, power, _shape(value))


@_rule("arith.andi")
def _and(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    """With 2^n - 1, what remains of a division by 2^n."""
    a, b = facts.of(op.operands[0]), facts.of(op.operands[1])
    if b.value is None or b.value <= 0 or b.value & (b.value + 1) or b.value >= MOST:
        return _elementwise(facts, op, value)
    power = Facts((1,) * len(b.contiguity), (b.value + 1,) * len(b.contiguity), _shape(value), b.value + 1)
    return _rest(a, power, _shape(value))


def _elementwise(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    """What holds of every operation on elements: those of equal operands are equal, and what divides each of them is
    asked of the table."""
    operands = [facts.of(x) for x in op.operands]
    rank = _rank(value)
    if any(len(x.constancy) != rank for x in operands):
        return _unknown(value)
    of_integers = ROWS[op.name].bounds is not None and isinstance(element_of(value.type), IntegerType)
    divisibility = tuple(_element(op, value, operands, i).multiple if of_integers else 1 for i in range(rank))
    return Facts((1,) * rank, divisibility, tuple(map(min, zip(*(x.constancy for x in operands), strict=True))))


def _element(op: Operation, value: SSAValue, operands: Sequence[Facts], axis: int) -> Bounds:
    """What is known of an element, by what is known along an axis of those that it is computed from."""
    bits, of_operand = (bit_width(element_of(x.type)) for x in (value, op.operands[0]))
    bounds = [
        fitted(Bounds.exact(x.value), of_operand) if x.value is not None
        else any_of(of_operand, x.divisibility[axis] if x.contiguity[axis] == 1 else 1)
        for x in operands
    ]  # fmt: skip
    return bounds_of(op.name, bounds, bits, of_operand)


def _rule_of(op: Operation) -> Rule | None:
    """The rule of an operation; that for all on elements, if it has none of its own."""
    return RULES.get(op.name, _elementwise if op.name in ELEMENTWISE and op.operands else None)


@_rule("arith.select")
def _select(facts: AxisFacts, op: Operation, value: SSAValue) -> Facts:
    condition, a, b = (facts.of(x) for x in op.operands)
    if len(condition.constancy) != len(a.constancy):
        return a | b
    contiguity = _least(_least(a.contiguity, b.contiguity), condition.constancy)
    divisibility = tuple(
        min(_limited(x, run, ca), _limited(y, run, cb))
        for x, y, run, ca, cb in zip(
            a.divisibility, b.divisibility, contiguity, a.contiguity, b.contiguity, strict=True
        )
    )
    return Facts(contiguity, divisibility, _least(_least(a.constancy, b.constancy), condition.constancy))
