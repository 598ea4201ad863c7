"""Peel the last iteration of a loop of products if little is left along K, and multiply only that.

    for at in range(0, 1544, 64):                          1544 is 24 * 64 + 8
      acc += a[:, at : at + 64] * b[at : at + 64, :]
becomes
    for at in range(0, 1536, 64): ...
    acc += a[:, 1536 : 1552] * b[1536 : 1552, :]           of the tiles, which are loaded as before, one instruction

where the rest of both tiles lies beyond the ends of their tensors, and is 0. A branch around products within the loop
would make ptxas wait for each product in its own iteration. Sums are added in the same order, because the omitted
products would add 0.

This pays only if one step of an instruction is left: it must wait for the products before it, and the stores for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from weft.ir import Builder, bit_width, i32_array, i64
from weft.ir.gpu import MemDescType, memdesc, ttg
from weft.ir.gpu.products import SharedProductOp

from ..affine import Sum, is_outside
from ..effects import shareable
from ..fold import int_of
from .bulk_loads import BulkLoad
from .rings import next_slot

STEP_BYTES = 32
"""Bytes of an operand along K that one instruction multiplies."""

Values: TypeAlias = dict[SSAValue, SSAValue]


class Multiplying(Protocol):
    """What the loop's rewriting does for an iteration (specialize_warps.py)."""

    loop: scf.ForOp
    products: list[SharedProductOp]
    loaded: dict[SSAValue, BulkLoad]
    count: int
    goes_further: bool
    slot: SSAValue

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


class ShortEnd:
    """The last iteration of a loop, apart where it is short; `is_possible` says whether that can be."""

    def __init__(self, part: Multiplying) -> None:
        self.part, self.loop = part, part.loop

    @property
    def is_possible(self) -> bool:
        """Whether all products add to what the loop carries, of operands that end where descriptors say."""
        part, end = self.part, self.loop.body.block.last_op
        step = int_of(self.loop.operands[2])
        if step is None or step <= 0 or not all(shareable(op) for op in part.others()):
            return False
        if any(use.operation is not end for p in part.products for use in p.d.uses):
            return False
        if any(getattr(p, "imprecise", 0) for p in part.products):
            return False
        sides = [(x, dim) for p in part.products for x, dim in ((p.a, 1), (p.b, 0))]
        return all(self._end(*side) is not None for side in sides)

    def begin(self, b: Builder) -> SSAValue:
        """Find out before the loop whether its last iteration is short; where the loop ends, then without that."""
        lower, upper, step = self.loop.operands[:3]
        size = int_of(step)
        assert size is not None
        one = b.constant(1, upper.type)
        left = b.binary(arith.SubiOp, b.binary(arith.SubiOp, upper, lower), one)  # of at least one iteration: >= 0
        whole = b.binary(arith.MuliOp, b.binary(arith.DivUIOp, left, step), step)
        self.last = b.binary(arith.AddiOp, lower, whole)
        self.is_short = b.cmpi("slt", lower, upper)
        ends = dict.fromkeys(self._end(x, dim) for p in self.part.products for x, dim in ((p.a, 1), (p.b, 0)))
        for at, end in (x for x in ends if x is not None):
            place = at.renamed(lambda v: self.last if v is self.loop.body.block.args[0] else v).made(b, i64)
            further = b.binary(arith.AddiOp, place, b.constant(_step(self.part.products[0].b), i64))
            self.is_short = b.binary(arith.AndIOp, self.is_short, b.cmpi("sge", further, end))
        return b.select(self.is_short, self.last, upper)

    def written(self, b: Builder, results: Sequence[SSAValue]) -> list[SSAValue]:
        """That iteration behind the loop, whose products have ended; `results` are what the loop gives, with the next
        slot and its phase, and so are those given back."""
        part, body = self.part, self.loop.body.block
        end = body.last_op
        assert end is not None
        there = b.if_(self.is_short, [x.type for x in results])
        with b.inside(there.false_region.block):
            b.yield_(results)
        with b.inside(there.true_region.block):
            *carried, slot, phase = results
            values: Values = dict(zip(body.args, [self.last, *carried], strict=False))
            values[part.slot] = slot
            for op in part.others():
                part.copy(b, op, values)
            for number in range(len(part.products)):
                part.filled(b, number, slot, phase)
                made = part.begin(b, number, values, slot).owner
                assert isinstance(made, SharedProductOp)
                near = Builder.before(made)
                for i, dim in ((0, 1), (1, 0)):
                    made.operands[i] = _first_step(near, made.operands[i], dim)
            ended = [p.d for p in part.products]
            over = part.products[0].wait(b, [values[x] for x in ended], 0)
            values.update(zip(ended, over.results, strict=True))
            if part.goes_further:
                for number in range(len(part.products)):
                    part.released(b, number, slot)
            b.yield_([*(values.get(x, x) for x in end.operands), *next_slot(b, part.count, slot, phase)])
        return list(there.results)

    def _end(self, operand: SSAValue, dim: int) -> tuple[Sum, SSAValue] | None:
        """Where an operand begins along K, which is this dimension of it, and where its tensor ends; None if that is
        not known, or if the tile is one step of an instruction."""
        view = operand.owner
        if isinstance(view, ttg.MemDescTransOp):
            operand, dim = view.operands[0], 1 - dim
        bulk = self.part.loaded.get(operand)
        if bulk is None or bulk.tensor is not None or len(bulk.at) != 2 or bulk.block[dim] <= _step(operand):
            return None
        at, index = bulk.at[dim], self.loop.body.block.args[0]
        if any(v is not index and not is_outside(v, self.loop) for v in at.scalars):
            return None
        return at, bulk.base.block.args[bulk.base.index + 2 + dim]


def _step(operand: SSAValue) -> int:
    """Elements along K that an instruction multiplies."""
    assert isinstance(operand.type, MemDescType)
    return STEP_BYTES * 8 // bit_width(operand.type.element_type)


def _first_step(b: Builder, operand: SSAValue, dim: int) -> SSAValue:
    """The part of an operand that an instruction multiplies first."""
    type = operand.type
    assert isinstance(type, MemDescType)
    shape = [_step(operand) if d == dim else size for d, size in enumerate(type.shape)]
    layout = type.data.layout.named
    assert layout is not None
    part = memdesc(shape, type.element_type, layout, mutable=type.data.mutable, allocated=type.shape)
    return b.create(ttg.MemDescSubsliceOp, (operand,), (part,), {"offsets": i32_array((0, 0))}).result
