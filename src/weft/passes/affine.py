"""Tiles of integers or pointers as sums with one term for each dimension, by which 2D blocks of memory are recognised.

    %p = splat %x + (%pid * 64 + 0..63)[:, None] * %stride + (32 * %k + 0..31)[None, :]

is the pointer %x and the form  `64 pid stride + 32 k`  +  i * `stride`  +  j * `1`  in elements. Offsets and steps are
polynomials in scalars of the program. A tile or a scalar that a loop moves by the same amount in each iteration is
expressed by the loop's counter,

    %p = scf.for %k = 0 to %n step 1 iter_args(%q = %init): %q + splat 32           %q = %init + 32 * %k

so that a mask `0..31 < %K - 32 * %k` and the pointer agree about the column.

Sums and products of 32 bits are assumed not to wrap, as for offsets of blocks (`analysis/bounds.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from weft.analysis import AxisFacts, IntegerBounds
from weft.ir import Builder, element_of, i32, i64, int_value, ints_of, is_int, is_pointer, is_tensor, shape_of, tt

from .fold import int_of

Monomial = tuple[SSAValue, ...]
MOST_TERMS = 24
"""Terms of a polynomial: a longer one is not worth computing its scalars."""


class NotAffine(Exception):
    """Why a tile is no such form, in words that go on after "its addresses"."""


class Sum:
    """A polynomial with integers in scalars of the program."""

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = {m: n for m, n in terms.items() if n}
        if len(self.terms) > MOST_TERMS:
            raise NotAffine("are long sums")

    @classmethod
    def number(cls, value: int) -> Sum:
        """A constant."""
        return cls({(): value})

    @classmethod
    def scalar(cls, value: SSAValue) -> Sum:
        """A value of the program."""
        return cls({(value,): 1})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __add__(self, other: Sum) -> Sum:
        terms = dict(self.terms)
        for m, n in other.terms.items():
            terms[m] = terms.get(m, 0) + n
        return Sum(terms)

    def __sub__(self, other: Sum) -> Sum:
        return self + other * -1

    def __mul__(self, other: Sum | int) -> Sum:
        if isinstance(other, int):
            return Sum({m: n * other for m, n in self.terms.items()})
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                m = tuple(sorted((*a, *b), key=id))
                terms[m] = terms.get(m, 0) + x * y
        return Sum(terms)

    @property
    def known(self) -> int | None:
        """The number, where it is one."""
        return self.terms.get((), 0) if not self.terms.keys() - {()} else None

    @property
    def known_part(self) -> int:
        """The number in it."""
        return self.terms.get((), 0)

    @property
    def scalars(self) -> set[SSAValue]:
        """The values that it is made of."""
        return {v for m in self.terms for v in m}

    def split(self, keep: Callable[[SSAValue], bool]) -> tuple[Sum, Sum]:
        """The terms all of whose scalars are to be kept, and the others."""
        kept = {m: n for m, n in self.terms.items() if all(map(keep, m))}
        return Sum(kept), Sum({m: n for m, n in self.terms.items() if m not in kept})

    def split_by(self, value: SSAValue) -> tuple[Sum, Sum]:
        """(a, b) of a * value + b, where b does not have the value."""
        inside: dict[Monomial, int] = {}
        for m, n in self.terms.items():
            if value in m:
                i = m.index(value)
                inside[(*m[:i], *m[i + 1 :])] = n
        return Sum(inside), Sum({m: n for m, n in self.terms.items() if value not in m})

    def at(self, value: SSAValue, instead: Sum) -> Sum:
        """The same with another sum in the place of a scalar."""
        total = NOTHING
        for m, n in self.terms.items():
            product = Sum.number(n)
            for v in m:
                product = product * (instead if v is value else Sum.scalar(v))
            total = total + product
        return total

    def renamed(self, instead: Callable[[SSAValue], SSAValue]) -> Sum:
        """The same with other scalars in the places of its own."""
        return Sum({tuple(map(instead, m)): n for m, n in self.terms.items()})

    def divisor(self, facts: AxisFacts) -> int:
        """A power of two that divides it, as far as is known; 2^30 of nothing."""
        least = 1 << 30
        for m, n in self.terms.items():
            power = n & -n
            for v in m:
                power *= facts.of(v).divisibility[0]
            least = min(least, power)
        return least

    def begins_blocks(self, width: int, facts: AxisFacts) -> bool:
        """Whether blocks of a width that begin at its values lie on one side of 0 each, as far as is known.

        192 * j + 128 does so with a width of 64, and not with one of 128: -64 is one of its values.
        """
        step = gcd(*(n * prod(facts.of(v).divisibility[0] for v in m) for m, n in self.terms.items() if m))
        if not step:
            return self.known_part >= 0 or self.known_part + width <= 0
        return self.known_part % step + width <= step

    def is_positive(self, bounds: IntegerBounds) -> bool:
        """Whether it is known not to be less than 0."""
        return all(n > 0 and all(bounds.of(v).low >= 0 for v in m) for m, n in self.terms.items())

    def made(self, b: Builder, type: Attribute) -> SSAValue:
        """Its value, i32 or i64, computed where the builder is."""
        total: SSAValue | None = None
        for m, n in self.terms.items():
            product: SSAValue | None = None
            for v in m:
                scalar = as_type(b, v, type)
                product = scalar if product is None else b.binary(arith.MuliOp, product, scalar)
            if product is None:
                product = b.constant(n, type)
            elif n != 1:
                product = b.binary(arith.MuliOp, product, b.constant(n, type))
            total = product if total is None else b.binary(arith.AddiOp, total, product)
        return total if total is not None else b.constant(0, type)


def as_type(b: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    """An integer with a sign in 32 or 64 bits."""
    if value.type == type:
        return value
    cast: type[Operation] = arith.ExtSIOp if type == i64 else arith.TruncIOp  # type: ignore[valid-type]
    return b.create(cast, (value,), (type,)).results[0]


NOTHING, ONE = Sum.number(0), Sum.number(1)


@dataclass(frozen=True)
class Form:
    """offset + i * steps[0] + j * steps[1] + ..., for a tile of pointers from `base`, in elements."""

    offset: Sum
    steps: tuple[Sum, ...]
    base: SSAValue | None = None

    @property
    def is_uniform(self) -> bool:
        """Whether all elements are the same."""
        return all(s == NOTHING for s in self.steps)

    def counts_beyond(self, other: Form) -> int | None:
        """The dimension along which the difference to another form counts elements; None where no single one does."""
        steps = [x - y for x, y in zip(self.steps, other.steps, strict=True)]
        moving = [d for d, s in enumerate(steps) if s != NOTHING]
        return moving[0] if len(moving) == 1 and steps[moving[0]] == ONE else None


class Forms:
    """The forms of values of a function, found when asked for."""

    def __init__(self) -> None:
        self._forms: dict[SSAValue, Form | NotAffine] = {}

    def of(self, value: SSAValue) -> Form:
        """NotAffine where a value is none."""
        found = self._forms.get(value)
        if found is None:
            self._forms[value] = NotAffine("go around a loop")
            try:
                found = self._found(value)
            except NotAffine as error:
                found = error
            self._forms[value] = found
        if isinstance(found, NotAffine):
            raise found
        return found

    def scalar(self, value: SSAValue) -> Sum:
        """What a scalar is a sum of; itself where it is none."""
        try:
            return self.of(value).offset
        except NotAffine:
            return Sum.scalar(value)

    def least(self, total: Sum, bounds: IntegerBounds) -> Sum:
        """A sum that `total` is never less than: counters of loops that it subtracts have their greatest values.

            for i in range(0, n // 64 + 1)        n - 64 i >= n - 64 (n // 64) >= n - n = 0
        """
        subtracted = [v for m, n in total.terms.items() if n < 0 for v in m]
        for value in subtracted:
            most = self._most(value)
            factor, rest = total.split_by(value)
            if most is None or any(n % most[0] for n in factor.terms.values()):
                continue
            if (factor * -1).is_positive(bounds):
                each = Sum({m: n // most[0] for m, n in factor.terms.items()})
                return self.least(each * most[1] + rest, bounds)
        return total

    def _most(self, value: SSAValue) -> tuple[int, Sum] | None:
        """(n, most), where n * value is at most that: for the counters of loops, and for quotients."""
        op = value.owner
        if isinstance(op, arith.DivUIOp) and (divisor := int_of(op.rhs)):
            return divisor, self.scalar(op.lhs)
        loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
        if not isinstance(loop, scf.ForOp) or value is not loop.body.block.args[0]:
            return None
        begin, end = loop.operands[:2]
        if isinstance(choice := end.owner, arith.SelectOp) and int_of(choice.rhs) == int_of(begin) is not None:
            end = choice.lhs  # with the other one, no iteration runs
        return 1, self.scalar(end) - ONE

    def _found(self, value: SSAValue) -> Form:
        rank = len(shape_of(value.type)) if is_tensor(value.type) else 0
        number = int_of(value) if not is_pointer(element_of(value.type)) else None
        if number is not None:
            return Form(Sum.number(number), (NOTHING,) * rank)
        if isinstance(value, BlockArgument):
            return self._argument(value, rank)
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, tt.MakeRangeOp):
            return Form(Sum.number(int_value(op.properties["start"])), (ONE,))
        if isinstance(op, tt.SplatOp):
            inner = op.operands[0]
            if is_pointer(inner.type):
                pointer = self.of(inner)
                return replace(pointer, steps=(NOTHING,) * rank)
            return Form(self.scalar(inner), (NOTHING,) * rank)
        if isinstance(op, tt.ExpandDimsOp):
            inner_form, axis = self.of(op.operands[0]), int_value(op.properties["axis"])
            steps = inner_form.steps
            return replace(inner_form, steps=(*steps[:axis], NOTHING, *steps[axis:]))
        if isinstance(op, tt.BroadcastOp):
            inner_form = self.of(op.operands[0])
            sizes = shape_of(op.operands[0].type)
            steps = tuple(s if n > 1 else NOTHING for s, n in zip(inner_form.steps, sizes, strict=True))
            return replace(inner_form, steps=steps)
        if isinstance(op, tt.TransOp):
            inner_form, order = self.of(op.operands[0]), ints_of(op.properties["order"])
            return replace(inner_form, steps=tuple(inner_form.steps[i] for i in order))
        if op.name == "ttg.convert_layout":
            return self.of(op.operands[0])
        if isinstance(op, tt.AddPtrOp):
            return _plus(self.of(op.operands[0]), self._number(op.operands[1]))
        if not is_int(element_of(value.type)):
            if not rank and is_pointer(value.type):
                return Form(NOTHING, (), value)
            raise NotAffine("are not a sum of a pointer and indices")
        if isinstance(op, arith.ExtSIOp):
            return self._number(op.operands[0])
        if isinstance(op, arith.AddiOp | arith.SubiOp):
            a, b = (self._number(x) for x in op.operands)
            if isinstance(op, arith.SubiOp):
                b = Form(b.offset * -1, tuple(s * -1 for s in b.steps))
            return _plus(a, b)
        if isinstance(op, arith.MuliOp):
            a, b = (self._number(x) for x in op.operands)
            if not b.is_uniform:
                a, b = b, a
            if not b.is_uniform:
                raise NotAffine("multiply two indices")
            return Form(a.offset * b.offset, tuple(s * b.offset for s in a.steps))
        if not rank:
            return Form(Sum.scalar(value), ())
        raise NotAffine(_WHY.get(op.name, f"are made by {op.name}"))

    def _number(self, value: SSAValue) -> Form:
        return self.of(value) if is_tensor(value.type) else Form(self.scalar(value), ())

    def _argument(self, value: BlockArgument, rank: int) -> Form:
        loop = value.block.parent_op()
        if isinstance(loop, scf.ForOp) and value.index:
            return self._carried(loop, value)
        if is_pointer(value.type):
            return Form(NOTHING, (), value)
        if rank:
            raise NotAffine("come from a loop")
        return Form(Sum.scalar(value), ())

    def _carried(self, loop: scf.ForOp, value: BlockArgument) -> Form:
        """What is carried, by the loop's counter: it begins somewhere, and moves by the same in each iteration."""
        end = loop.body.block.last_op
        assert end is not None
        moved = self._moved(end.operands[value.index - 1], value)
        if any(not is_outside(v, loop) for s in (moved.offset, *moved.steps) for v in s.scalars):
            raise NotAffine("are moved by a loop by a distance that it computes")
        begin = loop.operands[2 + value.index]
        initial = self.of(begin) if is_pointer(element_of(value.type)) else self._number(begin)
        step = int_of(loop.operands[2])
        if step is None and moved == replace(moved, offset=self.scalar(loop.operands[2])) and moved.is_uniform:
            return _plus(initial, replace(moved, offset=self._counted(loop)))  # by the loop's own step
        turns = self._counted(loop)
        if step is None or any(n % step for s in (moved.offset, *moved.steps) for n in s.terms.values()):
            raise NotAffine("are moved by a loop with another step")

        def over(s: Sum) -> Sum:
            return Sum({m: n // step for m, n in s.terms.items()}) * turns

        return _plus(initial, Form(over(moved.offset), tuple(map(over, moved.steps))))

    def _counted(self, loop: scf.ForOp) -> Sum:
        """How far a loop's counter has come."""
        return Sum.scalar(loop.body.block.args[0]) - self.scalar(loop.operands[0])

    def _moved(self, value: SSAValue, argument: BlockArgument) -> Form:
        """What is added to an argument to give a value."""
        rank = len(shape_of(value.type)) if is_tensor(value.type) else 0
        total = Form(NOTHING, (NOTHING,) * rank)
        while value is not argument:
            op = value.owner
            if isinstance(op, Block) or not isinstance(op, tt.AddPtrOp | arith.AddiOp):
                raise NotAffine("are moved by a loop by an operation other than a sum")
            at, more = op.operands
            if isinstance(op, arith.AddiOp) and not _leads_to(at, argument):
                at, more = more, at
            total = _plus(total, self._number(more))
            value = at
        return total


def _leads_to(value: SSAValue, argument: BlockArgument) -> bool:
    while isinstance(value.owner, arith.AddiOp):
        value = value.owner.operands[0]
    return value is argument


def _plus(a: Form, b: Form) -> Form:
    if len(a.steps) != len(b.steps):
        steps: Sequence[Sum] = a.steps or b.steps
    else:
        steps = [x + y for x, y in zip(a.steps, b.steps, strict=True)]
    return Form(a.offset + b.offset, tuple(steps), a.base or b.base)


_WHY = {
    "arith.remsi": "are taken modulo something (%), so rows may not be consecutive",
    "arith.remui": "are taken modulo something (%), so rows may not be consecutive",
    "tt.load": "are loaded from memory",
    "arith.select": "are chosen element by element",
}


def is_argument(value: SSAValue) -> bool:
    """Whether a value is an argument of a function."""
    return isinstance(value, BlockArgument) and isinstance(value.block.parent_op(), tt.FuncOp)


def is_outside(value: SSAValue, loop: Operation) -> bool:
    """Whether a value is there before a loop begins."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        op = block.parent_op()
        if op is loop:
            return False
        block = op.parent if op is not None else None
    return True


def as_integer(total: Sum) -> Attribute:
    """The type in which a sum that stands for an index is computed: i64 where one of its scalars has that."""
    return i64 if any(v.type == i64 for v in total.scalars) else i32
