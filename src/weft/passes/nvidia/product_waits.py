"""Place the waits for an iteration's products, each as late as the uses of its result and its operands allow.

    begin S;  begin dP                                steps of gradients of attention: the sums dV and dK are in flight
    wait for S, and for dV and dK of the last iteration      across iterations, as only their own products use them
    P = ...
    begin dV += P dO
    wait for dP, while dV may still be in flight
    dS = ...
    begin dK += dS Q

If registers are short, the wait for the previous iteration's dK comes before dP begins: dK reads dS from registers,
which dP then reuses. S is in flight meanwhile. With 128 x 128 scores and heads of 64, S, dP, dV, dK and dS take 224
words. Without this wait, ptxas would serialize the products, which is predicted to take 14.2 ms instead of 10.7 (11.7
on an H200).

At most one product that reads its left operand from registers is in flight at the end of an iteration, because the next
results need these registers.

Products end in the order in which they begin. So waiting for a product also waits for all before it, and a wait says
how many of the last ones may still be in flight. Products side by side (side_by_side.py) begin and end together, and
count as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft.ir import is_tensor, walk
from weft.ir.gpu.products import SharedProductOp
from weft.ir.gpu.ttg import LocalAllocOp, MemDescTransOp
from weft.ir.nvidia.ttng import SIDE_BY_SIDE, WarpGroupDotOp

from ..overlap_products import words_of


@dataclass(frozen=True)
class Begun:
    """A product under way."""

    product: SharedProductOp
    value: SSAValue | None
    """The value by which the iteration knows its result; None if another product has taken it over."""
    before: bool
    """Whether the iteration before has begun it."""


@dataclass(frozen=True)
class Wait:
    """A wait for some products, after which so many may still be under way."""

    over: tuple[Begun, ...]
    pending: int
    values: tuple[SSAValue, ...]
    """What may be used from then on."""


REGISTERS, OTHER_WORDS = 240, 24
"""Registers of a thread if two warp groups multiply, and how many of them are for addresses, counters and rows."""

Step: TypeAlias = Operation | Wait


@dataclass
class Waits:
    """The steps of an iteration, and what is under way at its end; `body` has its products in order."""

    body: Block
    steps: list[Step] = field(default_factory=list)
    begun: list[Begun] = field(default_factory=list)
    overtaken: list[tuple[Begun, SSAValue]] = field(default_factory=list)
    """Products of the iteration before, each with the sum of the one that adds to its result, which is about to begin:
    products side by side begin together."""

    def __post_init__(self) -> None:
        self._go()  # to see what is under way at the end, which does not depend on what is at the beginning
        end = self.body.last_op
        assert end is not None
        place = {value: i for i, value in enumerate(end.operands)}
        self.going = [
            (x.product, place[x.value] if x.value is not None and x.value in place else None) for x in self.begun
        ]
        """The products that go on into the next iteration, each with what the loop carries it as, if it does."""
        self.begun = [Begun(op, self.body.args[i + 1] if i is not None else None, before=True) for op, i in self.going]
        self.steps = []
        self._go()

    def _go(self) -> None:
        *ops, end = self.body.ops
        for op in ops:
            used = [x for inner in walk(op) for x in inner.operands]
            total = self._continued(op)
            self._await([x for x in used if x is not total])
            if isinstance(op, SharedProductOp) and total is None:
                self._free_registers(op)
            self.steps.append(op)
            if isinstance(op, SharedProductOp):
                self._begin(op, total)
        self._await([x for i, x in enumerate(end.operands) if not _goes_on(x, end)])
        last = len(self.begun) - 1
        while last > 0 and SIDE_BY_SIDE in self.begun[last].product.attributes:
            last -= 1
        held = [x for x in self.begun[: max(0, last)] if x.before or is_tensor(x.product.a.type)]
        held += [x for x in self.begun if x.before or stored_operands(x.product)]
        if held:
            self._wait(max(held, key=self.begun.index))

    def _free_registers(self, op: SharedProductOp) -> None:
        """Before a product begins behind another one of its iteration: where a thread would have too few registers for
        its result, wait for those of the iteration before that still read some."""
        reading = [x for x in self.begun if x.before and is_tensor(x.product.a.type)]
        new = {x.product.d for x in self.begun if not x.before}
        if not reading or not new or SIDE_BY_SIDE in op.attributes:
            return
        carried = [x for x in self.body.args if is_tensor(x.type)]
        tiles = {*carried, *new, op.d, *(x.product.a for x in reading)}
        if sum(map(words_of, tiles)) + OTHER_WORDS > REGISTERS:
            self._wait(reading[-1])

    def _continued(self, op: Operation) -> SSAValue | None:
        """The sum that a product adds to while it is under way, if it is and nothing else wants it."""
        if not isinstance(op, SharedProductOp) or not any(x.value is op.c for x in self.begun):
            return None
        return op.c if len(list(op.c.uses)) == 1 and not getattr(op, "imprecise", 0) else None

    def _begin(self, op: SharedProductOp, total: SSAValue | None) -> None:
        for i, x in enumerate(self.begun):
            if total is not None and x.value is total:
                old = self.begun[i] = Begun(x.product, None, x.before)
                if old.before:
                    self.overtaken.append((old, op.d))
        self.begun.append(Begun(op, op.d, before=False))
        if self.overtaken and not _is_begun_later(op):
            olds, sums = zip(*self.overtaken, strict=True)
            self.overtaken = []
            self._wait(max(olds, key=self.begun.index), *sums)

    def _await(self, values: Sequence[SSAValue]) -> None:
        """Wait for the products whose results are among some values."""
        wanted = [x for x in self.begun if x.value is not None and x.value in values]
        if wanted:
            self._wait(wanted[-1])

    def _wait(self, last: Begun, *more: SSAValue) -> None:
        count = self.begun.index(last) + 1
        over, self.begun = tuple(self.begun[:count]), self.begun[count:]
        values = (*(x.value for x in over if x.value is not None), *more)
        pending = sum(SIDE_BY_SIDE not in x.product.attributes for x in self.begun)
        self.steps.append(Wait(over, pending, values))


def _is_begun_later(product: SharedProductOp) -> bool:
    """Whether a product begins with one behind it."""
    return isinstance(product, WarpGroupDotOp) and product.row()[-1] is not product


def stored_operands(product: SharedProductOp) -> list[LocalAllocOp]:
    """The operands of a product that its iteration stores to shared memory: each iteration to the same place."""
    found = []
    for memory in (product.a, product.b):
        op = memory.owner
        while isinstance(op, MemDescTransOp):
            op = op.operands[0].owner
        if isinstance(op, LocalAllocOp) and op.parent is product.parent:
            found.append(op)
    return found


def _goes_on(value: SSAValue, end: Operation) -> bool:
    """Whether a value that is carried on is a product's result that nothing else uses."""
    is_product = not isinstance(value, BlockArgument) and isinstance(value.owner, SharedProductOp)
    return is_product and [use.operation for use in value.uses] == [end]
