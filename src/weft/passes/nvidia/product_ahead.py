"""Begin a product that is scaled and added to a sum one iteration ahead, if registers hold two such products.

    wait for the product of j;  sum += d_j * s_j               begin d_1;  wait for d_0;  sum += d_0 * s_0
    begin the product of j + 1                       becomes   begin d_2;  wait for d_1;  sum += d_1 * s_1
    ...                                                        ...

so that a warp group has a product in flight while it adds the previous one. Results alternate between two sets of
registers, so the loop's body has two iterations, and one may be left over:

    if lower < upper:
      first d_0                                                `_first`: what comes before a product, and the product
      for i from lower + step while i + step < upper, by 2 * step:
        first d_i;  last d_(i - step);  first d_(i + step);  last d_i     `_last`: the wait, and what comes behind it
      if i < upper: first d_i;  last d_(i - step);  last d_i
      else:         last d_(i - step)

Sums are added in the same order as without this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.ir import Builder, bit_width, element_of, is_float, is_tensor, shape_of
from weft.ir.gpu.products import SharedProductOp
from weft.ir.nvidia.ttng import WarpGroupDotOp

from ..fold import int_of
from .rings import next_slot, slot_before
from .specialized_loops import are_used_at_once, made_of

ROOM = 208
"""Registers of a thread that the sum and two products may take: of 240, the others are for addresses and scales."""
BUFFERS = 4
"""Buffers of each operand: products in flight read two, and with only one more, copies come too late (156 us instead of
144)."""
MOST_STEP = 1 << 24
"""The largest step of a loop: twice as much must fit in 32 bits too."""

Values: TypeAlias = dict[SSAValue, SSAValue]


class Multiplying(Protocol):
    """What the loop's rewriting does for a product (specialize_warps.py)."""

    loop: scf.ForOp
    tiles: scf.ForOp | None
    products: list[SharedProductOp]
    count: int
    slot: SSAValue
    warps: int

    def filled(self, b: Builder, number: int, slot: SSAValue, phase: SSAValue) -> None:
        """Wait for operands."""

    def begin(self, b: Builder, number: int, values: Values, slot: SSAValue) -> SSAValue:
        """Begin a product."""

    def released(self, b: Builder, number: int, slot: SSAValue, where: SSAValue | None = None) -> None:
        """Give buffers back."""

    def others(self) -> list[Operation]:
        """The operations that are copied as they are."""

    def copy(self, b: Builder, op: Operation, values: Values) -> None:
        """Copy one."""

    def again(self, b: Builder, lower: SSAValue, carried: Sequence[SSAValue], body: Block) -> scf.ForOp:
        """The loop with another body."""

    def if_any(
        self, b: Builder, slot: SSAValue, phase: SSAValue, iterations: Callable[..., list[SSAValue]]
    ) -> Sequence[SSAValue]:
        """What is written of iterations, if there is one at all."""
        ...


@dataclass
class _Begun:
    """A product under way: its result, what comes behind it needs of its iteration, and its slot."""

    result: SSAValue
    needed: list[SSAValue]
    slot: SSAValue


class ProductAhead:
    """How a loop's only product can be begun an iteration ahead; `is_possible` says whether."""

    def __init__(self, part: Multiplying) -> None:
        self.part, self.loop = part, part.loop
        self.body = self.loop.body.block
        end = self.body.last_op
        assert end is not None
        self.end = end
        self.behind = {op for p in part.products for op in made_of(p.d, self.body)} - {end}
        arguments = self.body.args[1 : len(self.loop.results) + 1]
        self.sums = [i for i, x in enumerate(end.operands) if x.owner in self.behind]
        """The numbers of the loop-carried values that are computed from the product. The others are known before it."""
        self.known = [i for i in range(len(self.loop.results)) if i not in self.sums]
        sums = {arguments[i] for i in self.sums}
        self.of_sums = {op for x in sums for op in made_of(x, self.body)}
        wanted = [x for op in self.others() if op in self.behind for x in op.operands]
        inside = [x for x in wanted if self._is_inside(x) and x not in sums and x.owner not in self.behind]
        self.needed = [x for x in dict.fromkeys(inside) if x not in [p.d for p in part.products]]
        """Values of an iteration that what comes behind its product uses."""

    def others(self) -> list[Operation]:
        """The operations that are copied."""
        return self.part.others()

    def _is_inside(self, value: SSAValue) -> bool:
        owner = value.owner
        return owner is self.body or (isinstance(owner, Operation) and owner.parent is self.body)

    @property
    def is_possible(self) -> bool:
        """Whether the product is the only one, is added to nothing, and nothing before it needs a sum.

        In a loop over tiles, ptxas does not find registers for two products beside those that the tiles need.
        """
        if self.part.tiles is not None:
            return False
        products, step = self.part.products, int_of(self.loop.operands[2])
        if len(products) != 1 or not isinstance(product := products[0], WarpGroupDotOp) or product.imprecise:
            return False
        if product.useC is None or int_of(product.useC) != 0 or not are_used_at_once(self.loop, products):
            return False
        if step is None or not 0 < step < MOST_STEP or not self.sums or not self.of_sums <= self.behind | {self.end}:
            return False
        tiles = [product.d.type, product.d.type, *(self.loop.results[i].type for i in self.sums)]
        tiles = [t for t in tiles if is_tensor(t) and is_float(element_of(t))]
        held = sum(prod(shape_of(t)) * bit_width(element_of(t)) for t in tiles) // 32 // (32 * self.part.warps)
        return self.part.count >= BUFFERS and held <= ROOM

    def written(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """The loop from a slot on; what it carries, and the next slot and its phase."""
        return self.part.if_any(b, slot, phase, self._iterations)

    def _iterations(self, b: Builder, *inits: SSAValue) -> list[SSAValue]:
        loop, part = self.loop, self.part
        lower, upper, step = loop.operands[:3]
        left = b.binary(arith.SubiOp, upper, lower)  # more than 0, and taken without a sign: it never wraps
        least = b.binary(arith.MinUIOp, step, left)
        second, end = b.binary(arith.AddiOp, lower, least), b.binary(arith.SubiOp, upper, least)
        *carried, slot, phase = inits
        known, begun = self._first(b, lower, [carried[i] for i in self.known], slot, phase)
        slot, phase = next_slot(b, part.count, slot, phase)
        sums = [carried[i] for i in self.sums]
        state = [second, *sums, *known, *begun.needed, begun.result, slot, phase]
        several = b.if_(b.cmpi("slt", second, end), [x.type for x in inits])
        with b.inside(several.true_region.block):
            b.yield_(self._rest(b, upper, self._pairs(b, second, end, step, state)))
        with b.inside(several.false_region.block):  # apart: where results of products meet, ptxas would move them
            b.yield_(self._rest(b, upper, state))
        return list(several.results)

    def _pairs(
        self, b: Builder, second: SSAValue, end: SSAValue, step: SSAValue, state: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Two iterations at a time, of which the first is the second one of the loop; the state after them."""
        loop, part = self.loop, self.part
        inner = Block(arg_types=[second.type, *(x.type for x in state)])
        index: SSAValue = inner.args[0]
        with b.inside(inner):
            _, sums, known, begun, slot, phase = self._unpacked(b, inner.args[1:])
            for _ in range(2):
                known, following = self._first(b, index, known, slot, phase)
                sums = self._last(b, sums, begun, 1)
                begun, index = following, b.binary(arith.AddiOp, index, step)
                slot, phase = next_slot(b, part.count, slot, phase)
            b.yield_([index, *sums, *known, *begun.needed, begun.result, slot, phase])
        operands = (second, end, b.binary(arith.AddiOp, step, step), *state)
        types, regions = [x.type for x in state], [Region(inner)]
        return b.create(scf.ForOp, operands, types, loop.properties, loop.attributes, regions).results

    def _rest(self, b: Builder, upper: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
        """The last iteration, if one is left, and the last product."""
        loop, part = self.loop, self.part
        index, sums, known, begun, slot, phase = self._unpacked(b, state)
        handed = [*(loop.results[i].type for i in (*self.sums, *self.known)), slot.type, phase.type]
        rest = b.if_(b.cmpi("slt", index, upper), handed)
        with b.inside(rest.true_region.block):
            after, following = self._first(b, index, known, slot, phase)
            of_both = self._last(b, self._last(b, sums, begun, 1), following, 0)
            b.yield_([*of_both, *after, *next_slot(b, part.count, slot, phase)])
        with b.inside(rest.false_region.block):
            b.yield_([*self._last(b, sums, begun, 0), *known, slot, phase])
        *values, slot, phase = rest.results
        by_number = dict(zip((*self.sums, *self.known), values, strict=True))
        return [*(by_number[i] for i in range(len(loop.results))), slot, phase]

    def _unpacked(
        self, b: Builder, state: Sequence[SSAValue]
    ) -> tuple[SSAValue, list[SSAValue], list[SSAValue], _Begun, SSAValue, SSAValue]:
        """What the loop carries: the next index, sums, the other values, the product under way, slot and phase."""
        index, *rest, result, slot, phase = state
        for value, name in ((slot, "slot"), (phase, "phase"), (index, self.body.args[0].name_hint)):
            value.name_hint = name
        a, c = len(self.sums), len(self.sums) + len(self.known)
        sums, known, needed = rest[:a], rest[a:c], rest[c:]
        names = [self.body.args[i + 1] for i in (*self.sums, *self.known)]
        for value, old in zip((*sums, *known, *needed), (*names, *self.needed), strict=True):
            value.name_hint = old.name_hint
        return index, sums, known, _Begun(result, needed, slot_before(b, self.part.count, slot)), slot, phase

    def _first(
        self, b: Builder, index: SSAValue, known: Sequence[SSAValue], slot: SSAValue, phase: SSAValue
    ) -> tuple[list[SSAValue], _Begun]:
        """What comes before the product of an iteration, and the product; what the next one knows."""
        values: Values = {self.body.args[0]: index}
        values.update(zip((self.body.args[i + 1] for i in self.known), known, strict=True))
        for op in self.others():
            if op not in self.behind:
                self.part.copy(b, op, values)
        self.part.filled(b, 0, slot, phase)
        result = self.part.begin(b, 0, values, slot)
        after = [self._of(values, self.end.operands[i]) for i in self.known]
        return after, _Begun(result, [self._of(values, x) for x in self.needed], slot)

    def _last(self, b: Builder, sums: Sequence[SSAValue], begun: _Begun, pending: int) -> list[SSAValue]:
        """Wait for a product after which so many were begun, and add it."""
        product = self.part.products[0]
        values: Values = dict(zip(self.needed, begun.needed, strict=True))
        values.update(zip((self.body.args[i + 1] for i in self.sums), sums, strict=True))
        (values[product.d],) = product.wait(b, [begun.result], pending).results
        self.part.released(b, 0, begun.slot)
        for op in self.others():
            if op in self.behind:
                self.part.copy(b, op, values)
        return [self._of(values, self.end.operands[i]) for i in self.sums]

    @staticmethod
    def _of(values: Mapping[SSAValue, SSAValue], value: SSAValue) -> SSAValue:
        return values.get(value, value)
