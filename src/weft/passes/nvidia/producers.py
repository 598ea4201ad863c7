"""Write the producer of a specialized loop: the warp that has the copy engine fill the loop's buffers.

    partition0 num_warps(1) {
      scf.for %i ... iter_args(%slot = 0, %phase = 1) {
        ttng.wait_barrier %empty[%slot], %phase
        ttng.barrier_expect %full[%slot], bytes
        ttng.async_tma_copy_global_to_local %map[...] %buffers[%slot], %full[%slot]
    }

If the loop is inside another one (over tiles, in a persistent kernel), the producer has both, and the ring of buffers
continues from one tile to the next: the copies of a tile's first operands are begun while the other warps store the
previous tile. The producer computes coordinates and bounds in the loops for itself.

In a cluster, warps of all blocks arrive at each block's mbarriers, and none may arrive at those of a block that has
ended. So, at the end, the producer waits until all buffers are empty again, while the others store:

      scf.for ... iter_args(%slot, %phase) { ttng.wait_barrier %empty[%slot], %phase } {tt.late}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.ir import Builder, bool_attr, i1, i32, i32_attr, unit_attr
from weft.ir.gpu import ttg
from weft.ir.nvidia import ttng

from ..affine import is_outside
from .bulk_loads import BulkLoad
from .rings import Ring, next_slot, wait, word

Values: TypeAlias = dict[SSAValue, SSAValue]


@dataclass(frozen=True)
class Feed:
    """What one loop of products is given: the loop and the one over tiles that it may be in, outermost first; its
    buffers, and the tensor maps of its loads."""

    loops: Sequence[scf.ForOp]
    rings: Sequence[Ring]
    maps: Mapping[BulkLoad, SSAValue]
    passes_over: bool = False
    """Whether a slot after each tile is left to the warps that multiply, which store the tile by way of it."""


class Producer:
    """Writes the partition for loops one behind the other; `captures` is then what it needs to be given."""

    def __init__(self, feeds: Sequence[Feed], count: int, blocks: int) -> None:
        self.count = count
        self.block = Block()
        self._given: Values = {}
        self._made: Values = {}
        b = Builder.at_end(self.block, feeds[0].loops[-1].location)
        at: Sequence[SSAValue] = (b.constant(0, i32), b.constant(1, i32))
        for self.feed in feeds:
            at = self._loop(b, list(self.feed.loops), *at)
        if blocks > 1:
            self._until_empty(b, *at)
        b.create(ttg.WarpReturnOp)

    @property
    def captures(self) -> list[SSAValue]:
        """What the partition's arguments stand for."""
        return list(self._given)

    def _loop(self, b: Builder, loops: list[scf.ForOp], slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """A loop and those in it, from a slot and its phase on; gives those after it."""
        loop, *rest = loops
        bounds = [self._computed(b, x) for x in loop.operands[:3]]
        inner = Block(arg_types=[bounds[0].type, i32, i32])
        index, now, its_phase = inner.args
        now.name_hint, its_phase.name_hint = "slot", "phase"
        index.name_hint = loop.body.block.args[0].name_hint
        self._made[loop.body.block.args[0]] = index
        with b.inside(inner):
            if rest:
                for bulk in self.feed.maps:  # what does not change in the inner loop
                    for v in (v for total in bulk.at for v in total.scalars if is_outside(v, rest[-1])):
                        self._computed(b, v)
                after = self._loop(b, rest, now, its_phase)
                if self.feed.passes_over:
                    after = self._passed_over(b, *after)
            else:
                for ring in self.feed.rings:
                    self._copies(b, ring, now, its_phase)
                after = next_slot(b, self.count, now, its_phase)
            b.yield_(after)
        return b.create(scf.ForOp, (*bounds, slot, phase), (i32, i32), regions=[Region(inner)]).results

    def _copies(self, b: Builder, ring: Ring, slot: SSAValue, phase: SSAValue) -> None:
        """Wait until a group's buffer is empty, and have it filled."""
        wait(b, word(b, self._gets(ring.empty), slot), phase)
        full, true = word(b, self._gets(ring.full), slot), b.constant(1, i1)
        size = {"size": i32_attr(sum(x.bytes for x in ring.group.loads))}
        b.create(ttng.BarrierExpectOp, (full, true), (), size)
        for bulk, buffers in zip(ring.group.loads, ring.buffers, strict=True):
            to = buffers.at(b, slot, self._gets(buffers.memory))
            at = [total.renamed(lambda v: self._computed(b, v)).made(b, i32) for total in bulk.at]
            kept = {k: v for k, v in bulk.load.properties.items() if k in ("cache", "evict")}
            if bulk.is_shared:
                kept["multicast"] = bool_attr(True)
            operands = (self._gets(self.feed.maps[bulk]), *at, full, to, true)
            copy = b.create(ttng.AsyncTMACopyGlobalToLocalOp, operands, (), kept)
            copy.location = bulk.load.location
            if bulk.is_shared:
                copy.attributes[ttng.DIVIDED] = unit_attr()

    def _passed_over(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """Say of an empty slot that it is full, without a copy. Gives the next slot and its phase."""
        for ring in self.feed.rings:
            wait(b, word(b, self._gets(ring.empty), slot), phase)
            full, true = word(b, self._gets(ring.full), slot), b.constant(1, i1)
            b.create(ttng.BarrierExpectOp, (full, true), (), {"size": i32_attr(0)})
        return next_slot(b, self.count, slot, phase)

    def _until_empty(self, b: Builder, slot: SSAValue, phase: SSAValue) -> None:
        """Wait as often as if each buffer were filled once more."""
        bounds = [b.constant(x, i32) for x in (0, self.count, 1)]
        inner = Block(arg_types=[i32, i32, i32])
        _, now, its_phase = inner.args
        now.name_hint, its_phase.name_hint = "slot", "phase"
        with b.inside(inner):
            for ring in self.feed.rings:
                wait(b, word(b, self._gets(ring.empty), now), its_phase)
            b.yield_(next_slot(b, self.count, now, its_phase))
        loop = b.create(scf.ForOp, (*bounds, slot, phase), (i32, i32), regions=[Region(inner)])
        loop.attributes[ttng.LATE] = unit_attr()

    def _gets(self, value: SSAValue) -> SSAValue:
        """A value from before the loops, which the partition is given."""
        if value not in self._given:
            self._given[value] = self.block.insert_arg(value.type, len(self.block.args))
            self._given[value].name_hint = value.name_hint
        return self._given[value]

    def _computed(self, b: Builder, value: SSAValue) -> SSAValue:
        """A scalar of the loops, which this warp computes for itself, or one that it is given."""
        if value in self._made:
            return self._made[value]
        if is_outside(value, self.feed.loops[0]):
            return self._gets(value)
        op = value.owner
        assert isinstance(op, Operation)
        clone = op.clone({x: self._computed(b, x) for x in op.operands})
        clone.location = op.location
        b.insert(clone)
        self._made[value] = clone.results[0]
        return self._made[value]
