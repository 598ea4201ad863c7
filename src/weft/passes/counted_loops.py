"""Turn `while` loops that count up to a limit, or down to one, into `for` loops.

    %s:2 = scf.while (%a = %init, %k = %c0) {
      %more = arith.cmpi slt, %k, %n
      scf.condition(%more) %a, %k
    } do {
      ... %a, %k
      %next = arith.addi %k, %c64
      scf.yield %b, %next
    }
becomes
    %s:2 = scf.for %i = %c0 to %n step %c64 iter_args(%a = %init, %k = %c0) {
      ... %a, %i
      %next = arith.addi %i, %c64
      scf.yield %b, %next
    }

Of a `for` loop it is known before it runs which values its counter takes. What begins loads iterations ahead, divides a
loop between kinds of warps, or unrolls it needs to know that, and asks for `for` loops. A loop that counts down, `while
k > 0`, becomes one that counts its iterations.

A loop is taken if its condition compares one integer that it carries with a value from outside, and an iteration adds a
constant to that integer, or the number of programs. As of any `for` loop, the counter is taken not to wrap.

The distance between two numbers may be no number of their type: from 2147483000 down to -1000000000 it is too large.
So the number of iterations of a loop that counts down is the distance, as a number without a sign, divided by the step,
and none if not even the first value is on the right side of the limit. That many iterations of a kernel are taken to be
less than 2^31. Counters of 8 and 16 bits are left alone, as few iterations are too many for these.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from weft.ir import Builder, bit_width, find, tt
from weft.ops.casts import INTEGER_PREDICATES

from .affine import is_outside
from .fold import int_of
from .removal import remove

MIRRORED = {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}
"""The comparison of `b` with `a` that tells the same as one of `a` with `b`."""
NARROWEST = 32
"""How many bits a counter has at least."""
OF_BOUNDS = (arith.ConstantOp, arith.CmpiOp, scf.ConditionOp)
"""All that may stand in front of an iteration."""


@dataclass(frozen=True)
class _Count:
    """How a loop counts: which carried value, as long as it compares so with a limit, and by how much."""

    carried: int
    predicate: str
    limit: SSAValue
    added: tuple[SSAValue | None, bool]
    """What an iteration adds, or takes away if that is true."""

    @property
    def is_up(self) -> bool:
        return self.predicate in ("slt", "sle")

    @property
    def takes_limit(self) -> bool:
        """Whether an iteration runs for the limit itself too."""
        return self.predicate in ("sle", "sge")

    @property
    def comes_nearer(self) -> bool:
        """Whether each iteration is known to bring the value nearer to the limit."""
        value, is_taken = self.added
        if value is None:
            return False
        if isinstance(value.owner, tt.GetNumProgramsOp):
            return self.is_up is not is_taken
        by = int_of(value) or 0
        return by != 0 and self.is_up is ((by > 0) is not is_taken)

    def step(self, b: Builder, type: Attribute) -> SSAValue:
        """By how much, without a sign."""
        value, _ = self.added
        assert value is not None
        if isinstance(op := value.owner, tt.GetNumProgramsOp):
            return b.create(tt.GetNumProgramsOp, (), (type,), op.properties).result
        by = int_of(value)
        assert by is not None
        return b.constant(abs(by), type)


def count_loops(root: Operation) -> None:
    """Rewrite the `while` loops inside `root` that count, inner ones first."""
    for loop in reversed(find(root, scf.WhileOp)):
        count = _count_of(loop)
        if count is not None:
            _rewrite(loop, count)


def _count_of(loop: scf.WhileOp) -> _Count | None:
    before, body = (region.block for region in loop.regions)
    condition, end = before.last_op, body.last_op
    if not isinstance(condition, scf.ConditionOp) or not isinstance(end, scf.YieldOp):
        return None
    if not all(isinstance(op, OF_BOUNDS) for op in before.ops):
        return None
    compared = condition.operands[0].owner
    passed = condition.operands[1:]
    if not isinstance(compared, arith.CmpiOp) or not all(_is_carried(x, before) for x in passed):
        return None
    predicate = INTEGER_PREDICATES[int(compared.predicate.value.data)]
    counter, limit = compared.operands
    if not _is_carried(counter, before):
        counter, limit, predicate = limit, counter, MIRRORED.get(predicate, "")
    if predicate not in MIRRORED or not _is_carried(counter, before):
        return None
    if int_of(limit) is None and not is_outside(limit, loop):
        return None
    assert isinstance(counter, BlockArgument)
    if counter not in passed:
        return None
    argument = body.args[list(passed).index(counter)]
    count = _Count(counter.index, predicate, limit, _added(end.operands[counter.index], argument))
    return count if count.comes_nearer and bit_width(counter.type) >= NARROWEST else None


def _is_carried(value: SSAValue, before: Block) -> bool:
    return isinstance(value, BlockArgument) and value.owner is before


def _added(value: SSAValue, counter: SSAValue) -> tuple[SSAValue | None, bool]:
    """What is added to a counter, or taken from it if that is true, where a value is such a sum."""
    op = value.owner
    if isinstance(op, arith.AddiOp | arith.SubiOp):
        x, y = op.operands
        if x is counter:
            return y, isinstance(op, arith.SubiOp)
        if y is counter and isinstance(op, arith.AddiOp):
            return x, False
    return None, False


def _rewrite(loop: scf.WhileOp, count: _Count) -> None:
    b = Builder.before(loop)
    before, body = (region.block for region in loop.regions)
    condition = before.last_op
    assert condition is not None
    first = loop.operands[count.carried]
    type, known = first.type, int_of(count.limit)
    limit = count.limit if known is None else b.constant(known, type)
    step = count.step(b, type)
    if count.is_up:
        lower, upper, by = first, _plus(b, limit, 1) if count.takes_limit else limit, step
    else:
        lower, upper, by = b.constant(0, type), _iterations_down(b, count, first, limit, step), b.constant(1, type)
    places = [x.index for x in condition.operands[1:] if isinstance(x, BlockArgument)]
    given = list(body.args)
    index, *carried = (body.insert_arg(t, len(body.args)) for t in (type, *(x.type for x in loop.operands)))
    here = index if count.is_up else _minus_steps(Builder.at_start(body, loop.location), first, index, step)
    for argument, place in zip(given, places, strict=True):
        carried[place].name_hint = argument.name_hint
        argument.replace_all_uses_with(here if place == count.carried else carried[place])
        body.erase_arg(argument)
    index.name_hint = carried[count.carried].name_hint
    operands = (lower, upper, by, *loop.operands)
    region = loop.detach_region(loop.regions[1])
    new = b.create(scf.ForOp, operands, [x.type for x in loop.operands], {}, dict(loop.attributes), [region])
    for old, place in zip(loop.results, places, strict=True):
        new.results[place].name_hint = old.name_hint
        old.replace_all_uses_with(new.results[place])
    remove(loop)


def _iterations_down(b: Builder, count: _Count, first: SSAValue, limit: SSAValue, step: SSAValue) -> SSAValue:
    """How many iterations come from `first` down to a limit."""
    distance = b.binary(arith.SubiOp, first, limit)
    if int_of(step) != 1:
        last = distance if count.takes_limit else _plus(b, distance, -1)
        number = _plus(b, b.binary(arith.DivUIOp, last, step), 1)
    else:
        number = _plus(b, distance, 1) if count.takes_limit else distance
    return b.select(b.cmpi(count.predicate, first, limit), number, b.constant(0, first.type))


def _minus_steps(b: Builder, first: SSAValue, index: SSAValue, step: SSAValue) -> SSAValue:
    """The counter in the iteration of this number."""
    return b.binary(arith.SubiOp, first, index if int_of(step) == 1 else b.binary(arith.MuliOp, index, step))


def _plus(b: Builder, value: SSAValue, by: int) -> SSAValue:
    return b.binary(arith.AddiOp, value, b.constant(by, value.type))
