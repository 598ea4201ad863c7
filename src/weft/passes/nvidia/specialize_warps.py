"""Specialize the warps of a loop of products: one has the copy engine fill buffers, the others multiply their contents.

    scf.for %i = %lo to %hi step %st iter_args(%acc = %init) {
      %k = tt.load ...                                      a block of a descriptor
      %s = ttng.warp_group_dot %q, %k, zero
      ...
becomes
    %buffers, %full, %empty = two buffers, and two mbarriers for each
    ttg.warp_specialize
    default {                                               the kernel's own warps
      scf.for %i ... iter_args(%acc, %slot = 0, %phase = 0) {
        ttng.wait_barrier %full[%slot], %phase
        %s = ttng.warp_group_dot %q, %buffers[%slot], zero
        ... wait for the product ...
        ttng.arrive_barrier %empty[%slot]                   each warp for itself
        ...
    }
    partition0 num_warps(1) {
      scf.for %i ... iter_args(%slot = 0, %phase = 1) {
        ttng.wait_barrier %empty[%slot], %phase
        ttng.barrier_expect %full[%slot], bytes
        ttng.async_tma_copy_global_to_local %desc[...] %buffers[%slot], %full[%slot]
    }

No warp waits for all others in such a loop, so warp groups drift apart: while one computes between its products, the
matrix units execute those of another. If a loop has two products, two warp groups begin theirs alternately
(ttng.warp_group_turn), which keeps them apart.

In attention, the second product multiplies a value computed from the first, and adds to a loop-carried sum. The second
product of an iteration is then begun in the next iteration, after its first one. The operations between the two
products overlap it:

    S_0; between_0                                          if there is an iteration
    scf.for %j = 1 ... {
      begin S_j = q k_j;  begin O += P_(j-1) v_(j-1)
      wait for S_j;  P_j = between(S_j);  wait for O;  O = O * shrink_j        or: wait for both;  P_j = ...
    }
    O += P_last v_last

as FlashAttention-3 does it by hand (Shah et al. 2024, section 3.2).

If the loop of products is in a loop over tiles (a persistent kernel), both loops are specialized: each kind of warps
iterates over all tiles, and the copies run ahead into the next tile while the others still store this one.

producers.py writes the warp that copies, and rings.py the buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.base.remarks import NO_REMARKS, Copy, NotSpecialized, RemarkCollector, WarpsSpecialized
from weft.ir import Builder, bool_attr, i32, span_of, tile_text, tt
from weft.ir.gpu import ttg
from weft.ir.gpu.products import SharedProductOp, shared_products
from weft.ir.nvidia import ttng
from weft.machines import Machine

from ..buffered_tiles import read_instead
from ..effects import shareable
from ..overlap_products import hoist_operands, remove_fences
from ..removal import remove
from .bulk_loads import BulkLoad, map_of
from .bulk_stores import wait_until_read
from .load_by_warp import load_by_warp
from .loads_ahead import load_ahead
from .loop_sequences import move_before, scalars_of, sequence
from .producers import Feed, Producer
from .product_ahead import ProductAhead
from .product_order import VIEWS, order_products
from .product_waits import Wait, Waits, stored_operands
from .rings import Ring, give_back, next_slot, ring_of, slot_before, wait, word
from .short_ends import ShortEnd
from .side_by_side import products_of
from .specialized_branches import are_made_before, branch_around, out_of_branches
from .specialized_loops import (
    Plan,
    are_used_at_once,
    in_body,
    is_asked,
    made_of,
    multiplies,
    planned,
)
from .sunk_operations import sink
from .tile_stores import store_by_buffers, store_by_slot
from .warpgroup_products import has_groups

PRODUCER_REGISTERS = 24
"""For a thread that only begins copies: the fewest that setmaxnreg can ask for."""
REGISTERS_WITH_TILES = 40
"""For one that also computes the coordinates of tiles."""

TWO_GROUPS = 8
"""Warps of two warp groups."""

Values: TypeAlias = dict[SSAValue, SSAValue]


def specialize_warps(
    loop: scf.ForOp, stages: int, machine: Machine, remarks: RemarkCollector = NO_REMARKS
) -> str | None:
    """Rewrite a loop. Return None if that is done, and otherwise, in words, why the loop stays."""
    plan = planned(loop, stages, machine)
    plans = [] if isinstance(plan, str) else sequence(loop, plan, stages, machine)
    branch = branch_around(loop)
    if branch is not None and not all(are_made_before(scalars_of(*each), branch) for each in plans):
        plan = "the addresses of an operand depend on values that are loaded in the branch around the loop"
    if isinstance(plan, str):
        if remarks and (is_asked(loop) or (has_groups(machine) and multiplies(loop))):
            remarks.add(NotSpecialized(span_of(loop), plan))
        return plan
    for each, plan in plans if remarks else ():
        loads = [x for g in plan.groups for x in g.loads]
        copies = tuple(Copy(tile_text(x.load.result.type), span_of(x.load), plan.count, x.bytes) for x in loads)
        remarks.add(WarpsSpecialized(span_of(each), plan.count, copies, plan.halves is not None))
    for each, plan in plans[1:]:
        move_before(scalars_of(each, plan), loop)
    _divide([_Specialized(each, plan, machine) for each, plan in plans])
    return None


def _divide(parts: Sequence[_Specialized]) -> None:
    """Replace consecutive loops, and the operations between them, by a producer and consumers."""
    for part in parts:
        hoist_operands(part.loop)
        remove_fences(part.loop)  # each product that needs one gets its own where it begins
        if are_used_at_once(part.loop, shared_products(part.loop.body.block)):
            load_by_warp(part.loop, part.machine)
            part.loop = load_ahead(part.loop)
    first = parts[0]
    b = Builder.before(first.whole)
    early = b
    if isinstance(first.whole.parent_op(), tt.FuncOp) and b.block is not None:  # others wait for the mbarriers
        early = Builder.at_start(b.block, first.whole.location)
    rings = [
        ring_of(b, early, group, first.rows, first.count, first.warps, first.blocks, len(first.groups) > 1)
        for group in first.groups
    ]
    feeds: list[Feed] = []
    for part in parts:
        part.rings = [replace(ring, group=group) for ring, group in zip(rings, part.groups, strict=True)]
        maps = {bulk: map_of(bulk) for group in part.groups for bulk in group.loads}
        if not part.staging.is_in_slot:
            store_by_buffers(b, part.stores, part.staging)
        loops = [part.loop] if part.tiles is None else [part.tiles, part.loop]
        feeds.append(Feed(loops, part.rings, maps, part.staging.is_in_slot))
    producer = Producer(feeds, first.count, first.blocks)
    consumer = _consumer(parts, b)
    behind = parts[-1].whole.next_op
    assert behind is not None
    for part in parts:
        remove(part.whole)
    b = Builder.before(behind)
    if first.blocks > 1:  # no block may use an mbarrier of another one that is not made yet
        b.create(ttng.ClusterArriveOp, (), (), {"relaxed": bool_attr(False)})
        b.create(ttng.ClusterWaitOp)
    registers = PRODUCER_REGISTERS if first.tiles is None else REGISTERS_WITH_TILES
    new = _beside(b, consumer, producer, registers)
    sink(new)
    out_of_branches(new)


def _consumer(parts: Sequence[_Specialized], b: Builder) -> Block:
    """The loops of the warps that multiply, with the operations between the loops moved there."""
    consumer = Block()
    with b.inside(consumer):
        slot, phase = b.constant(0, i32), b.constant(0, i32)
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            part.goes_further = after is not None or part.tiles is not None or part.blocks > 1
            part.prepare()
            *results, slot, phase = part.consumer(b, slot, phase)
            between = list(_between(part.whole, after.whole)) if after is not None else []
            for old, other in zip(part.whole.results, results, strict=True):
                other.name_hint = old.name_hint
                old.replace_all_uses_with(other)
            for op in between:
                op.detach()
                b.insert(op)
        if any(part.stores and not part.staging.is_in_slot for part in parts):
            wait_until_read(b)
    return consumer


def _beside(b: Builder, consumer: Block, producer: Producer, registers: int) -> ttg.WarpSpecializeOp:
    """The operation in which a consumer and a producer run concurrently; its results replace the consumer's."""
    used = [r for op in consumer.ops for r in op.results if any(in_body(consumer, u.operation) is None for u in r.uses)]
    Builder.at_end(consumer).create(ttg.WarpYieldOp, used)
    holder = Block()
    properties = {
        "partitionNumWarps": DenseArrayBase.from_list(i32, [1]),
        "requestedRegisters": DenseArrayBase.from_list(i32, [registers]),
    }
    regions = [Region(consumer), Region(holder)]
    new = b.create(ttg.WarpSpecializeOp, producer.captures, [r.type for r in used], properties, regions=regions)
    Builder.at_end(holder).create(ttg.WarpSpecializePartitionsOp, regions=[Region(producer.block)])
    for inner, outer in zip(used, new.results, strict=True):
        outer.name_hint = inner.name_hint
        for use in [u for u in inner.uses if in_body(consumer, u.operation) is None]:
            use.operation.operands[use.index] = outer
    return new


def _between(op: Operation, end: Operation) -> Iterator[Operation]:
    """The operations after one and before another."""
    at = op.next_op
    while at is not None and at is not end:
        yield at
        at = at.next_op


class _Specialized:
    """The rewriting of one loop."""

    def __init__(self, loop: scf.ForOp, plan: Plan, machine: Machine) -> None:
        self.loop, self.tiles, self.machine, self.warps = loop, plan.tiles, machine, plan.warps
        self.groups, self.count, self.halves, self.stores = plan.groups, plan.count, plan.halves, plan.stores
        self.staging, self.blocks, self.rows = plan.staging, plan.blocks, plan.rows
        self.rings: list[Ring] = []
        self.slot: SSAValue = loop.body.block.args[0]  # `prepare` sets it
        self.loaded: dict[SSAValue, BulkLoad] = {}
        """What is in the buffers that the loop reads, once it is prepared."""
        self.products: list[SharedProductOp] = []
        self.goes_further = False
        """Whether somebody waits for the buffers behind the loop."""

    @property
    def whole(self) -> scf.ForOp:
        """What is replaced: the loop, or the one over tiles that it is in."""
        return self.loop if self.tiles is None else self.tiles

    def consumer(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """What the warps that multiply do, from a slot on: its results, and the next slot and its phase."""
        if self.tiles is not None:
            return self.over_tiles(b, self.tiles, slot, phase)
        return self.alone(b, slot, phase)

    # -- the warps that multiply --------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Let the products of the loop, which is about to be copied, read buffers whose number is `slot`."""
        body = self.loop.body.block
        self.slot = body.insert_arg(i32, len(body.args))
        for row in self.rows:
            row.mark()
        readers = [{p for bulk in ring.group.loads for p in products_of(bulk.load.result)} for ring in self.rings]
        for ring in self.rings:
            for bulk, buffers in zip(ring.group.loads, ring.buffers, strict=True):
                b = Builder.before(bulk.load)
                buffer = buffers.at(b, self.slot)
                self.loaded[buffer] = bulk
                read_instead(bulk.load, bulk.tile(b, buffer), self.machine)
        _stop_idle(self.loop)
        load_by_warp(self.loop, self.machine)
        if self.halves is None and not are_used_at_once(self.loop, shared_products(body)):
            order_products(self.loop)
        self.products = shared_products(body)
        numbers = [[self.products.index(p) for p in those] for those in readers]
        groups = [replace(r.group, first=min(n), last=max(n)) for r, n in zip(self.rings, numbers, strict=True)]
        self.rings = [replace(ring, group=group) for ring, group in zip(self.rings, groups, strict=True)]

    def copy(self, b: Builder, op: Operation, values: Values) -> None:
        """An operation of the loop once more, of other values."""
        clone = op.clone(values)
        clone.location = op.location
        b.insert(clone)

    def filled(self, b: Builder, number: int, slot: SSAValue, phase: SSAValue) -> None:
        """Wait until the operands are there that a product is the first to read."""
        for ring in self.rings:
            if ring.group.first == number:
                wait(b, word(b, ring.full, slot), phase)

    def begin(self, b: Builder, number: int, values: Values, slot: SSAValue) -> SSAValue:
        """A product, which only begins; its result."""
        product = self.products[number]
        for memory in (product.a, product.b):
            self.view(b, memory, values, slot)
        if stored_operands(product):
            product.fence(b)
        self.copy(b, product, values)
        made = values[product.d].owner
        assert isinstance(made, SharedProductOp)
        made.begin()
        return made.d

    def view(self, b: Builder, memory: SSAValue, values: Values, slot: SSAValue) -> None:
        """An operand where it is in the buffer of a slot."""
        op = memory.owner
        if memory not in self.views or not isinstance(op, Operation):
            return
        values[self.slot] = slot
        self.view(b, op.operands[0], values, slot)
        self.copy(b, op, values)

    @property
    def views(self) -> set[SSAValue]:
        """Operands in buffers."""
        return {op.results[0] for op in self.loop.body.block.ops if isinstance(op, VIEWS)}

    def released(self, b: Builder, number: int, slot: SSAValue, where: SSAValue | None = None) -> None:
        """Give buffers back that product `number` was the last to read, if `where` holds."""
        for ring in self.rings:
            if ring.group.last == number:
                give_back(b, ring, slot, self.blocks, where)

    def others(self) -> list[Operation]:
        """The operations of the loop's body but products, views of buffers, and its end."""
        views = {v.owner for v in self.views}
        apart = (SharedProductOp, scf.YieldOp)
        return [op for op in self.loop.body.block.ops if not isinstance(op, apart) and op not in views]

    def alone(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """The loop itself."""
        if self.halves is not None:
            return self.if_any(b, slot, phase, self.rotated)
        ahead = ProductAhead(self)
        return ahead.written(b, slot, phase) if ahead.is_possible else self.plain(b, slot, phase)

    def over_tiles(self, b: Builder, tiles: scf.ForOp, slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """The loop over tiles that the loop is in: it hands on which buffer is next."""
        first = slot, phase
        body = tiles.body.block
        end = body.last_op
        assert end is not None
        slot, phase = (body.insert_arg(i32, len(body.args)) for _ in range(2))
        near = Builder.before(self.loop)
        *results, next_one, its_phase = self.alone(near, slot, phase)
        for old, other in zip(self.loop.results, results, strict=True):
            other.name_hint = old.name_hint
            old.replace_all_uses_with(other)
        remove(self.loop)
        if self.staging.is_in_slot:
            store_by_slot(self.stores, self.staging, self.rings, next_one, its_phase, self.blocks)
            next_one, its_phase = next_slot(Builder.before(end), self.count, next_one, its_phase)
        Builder.before(end).yield_([*end.operands, next_one, its_phase])
        remove(end)
        types = [*(r.type for r in tiles.results), i32, i32]
        region = tiles.body
        tiles.detach_region(region)
        tiles.add_region(Region(Block()))
        operands = (*tiles.operands, *first)
        return b.create(scf.ForOp, operands, types, tiles.properties, tiles.attributes, [region]).results

    def plain(self, b: Builder, slot: SSAValue, phase: SSAValue) -> Sequence[SSAValue]:
        """Products in their order, from a slot on, each awaited where its result is needed (product_waits.py): one that
        adds to what nothing else of the loop uses goes on into the next iteration. Gives what the loop carries, and the
        next slot and its phase."""
        loop, body = self.loop, self.loop.body.block
        end = body.last_op
        assert end is not None
        waits = Waits(body)
        carried = [*loop.operands[3:]]
        inner = Block(arg_types=[body.args[0].type, *(x.type for x in carried), i32, i32])
        begin = slot, phase
        slot, phase = inner.args[-2:]
        _name_like(inner, body)
        slot.name_hint, phase.name_hint = "slot", "phase"
        values: Values = dict(zip(body.args, inner.args, strict=False))
        values[self.slot] = slot
        others = set(self.others())
        with b.inside(inner):
            for step in waits.steps:
                if isinstance(step, Wait):
                    self.awaited(b, step, values, slot)
                elif isinstance(step, SharedProductOp):
                    number = self.products.index(step)
                    self.filled(b, number, slot, phase)
                    self.begin(b, number, values, slot)
                elif step in others:
                    self.copy(b, step, values)
            b.yield_([*(values.get(x, x) for x in end.operands), *next_slot(b, self.count, slot, phase)])
        if any(_stored_before(product) for product in self.products):
            b.create(ttg.LocalBarrierOp)  # here, not for each iteration
        short = ShortEnd(self)
        upper = loop.operands[1]
        if is_apart := short.is_possible:
            upper = short.begin(b)
        new = self.again(b, loop.operands[0], [*carried, *begin], inner, upper)
        results: list[SSAValue] = list(new.results)
        if waits.going:
            places = [i for _, i in waits.going if i is not None]
            over = self.products[0].wait(b, [results[i] for i in places], 0)
            for i, value in zip(places, over.results, strict=True):
                results[i] = value
            if self.goes_further:  # the last buffers are wanted too
                last = slot_before(b, self.count, results[-2])
                there = b.cmpi("slt", loop.operands[0], upper)
                for product, _ in waits.going:
                    self.released(b, self.products.index(product), last, there)
        return short.written(b, results) if is_apart else results

    def awaited(self, b: Builder, wait: Wait, values: Values, slot: SSAValue) -> None:
        """Wait for products, and give back what they were the last to read, where this is not the first iteration
        also that of the one before."""
        over = self.products[0].wait(b, [values[x] for x in wait.values], wait.pending)
        values.update(zip(wait.values, over.results, strict=True))
        for begun in wait.over:
            number = self.products.index(begun.product)
            if not begun.before:
                self.released(b, number, slot)
            elif any(ring.group.last == number for ring in self.rings):
                before = slot_before(b, self.count, slot)
                index = values[self.loop.body.block.args[0]]
                self.released(b, number, before, b.cmpi("ne", index, self.loop.operands[0]))

    def again(
        self, b: Builder, lower: SSAValue, carried: Sequence[SSAValue], body: Block, upper: SSAValue | None = None
    ) -> scf.ForOp:
        """The loop with another body and other values to carry."""
        loop = self.loop
        operands = (lower, loop.operands[1] if upper is None else upper, loop.operands[2], *carried)
        return b.create(
            scf.ForOp, operands, [x.type for x in carried], loop.properties, loop.attributes, [Region(body)]
        )

    def if_any(
        self, b: Builder, slot: SSAValue, phase: SSAValue, iterations: Callable[..., list[SSAValue]]
    ) -> Sequence[SSAValue]:
        """What `iterations` writes from a slot on, if the loop has an iteration at all; what it carries, and the next
        slot and its phase."""
        loop = self.loop
        inits = [*loop.operands[3:], slot, phase]
        lower, upper, _ = loop.operands[:3]
        there = b.if_(b.cmpi("slt", lower, upper), [x.type for x in inits])
        with b.inside(there.false_region.block):
            b.yield_(inits)
        with b.inside(there.true_region.block):
            b.yield_(iterations(b, *inits))
        return there.results

    def rotated(self, b: Builder, *inits: SSAValue) -> list[SSAValue]:
        """The loop with its last product begun in the next iteration: the first iteration but for its last product, the
        loop, and the last product."""
        assert self.halves is not None
        loop, last = self.loop, self.products[1]
        k = self.halves.carried
        lower, upper, step = loop.operands[:3]
        *inits_carried, first, its_phase = inits
        carried, handed = self.first_half(b, lower, inits_carried, first, its_phase, None)
        self.turn(b, "begin")
        values: list[SSAValue] = [*carried, handed, first, its_phase]
        inner = Block(arg_types=[lower.type, *(x.type for x in values)])
        now, (given, before, phase_before) = inner.args[1:-3], inner.args[-3:]
        _name_like(inner, loop.body.block)
        before.name_hint, phase_before.name_hint = "slot", "phase"
        with b.inside(inner):
            slot, phase = next_slot(b, self.count, before, phase_before)
            old = (now[k], given, before, phase_before)
            after, ready = self.first_half(b, inner.args[0], now, slot, phase, old)
            b.yield_([*after, ready, slot, phase])
        left = b.binary(arith.SubiOp, upper, lower)  # more than 0, and taken without a sign: it never wraps
        second = b.binary(arith.AddiOp, lower, b.binary(arith.MinUIOp, step, left))
        new = self.again(b, second, values, inner)
        results: list[SSAValue] = list(new.results[:-3])
        self.turn(b, "end")
        *_, slot, phase = new.results
        ended = self.last_half(b, results[k], *new.results[-3:])
        results[k] = last.wait(b, [ended], 0).results[0]
        if self.goes_further:
            self.released(b, 1, slot)
        return [*results, *next_slot(b, self.count, slot, phase)]

    def first_half(
        self,
        b: Builder,
        index: SSAValue,
        carried: Sequence[SSAValue],
        slot: SSAValue,
        phase: SSAValue,
        before: tuple[SSAValue, SSAValue, SSAValue, SSAValue] | None,
    ) -> tuple[list[SSAValue], SSAValue]:
        """All of an iteration but its last product, which is that of the iteration `before`, if there is one; what is
        carried on, and the left operand of the last product.

        What `before` gives: the sum, the left operand, the slot and the phase.
        """
        assert self.halves is not None
        body, (first, last) = self.loop.body.block, self.products
        end = body.last_op
        assert end is not None
        k = self.halves.carried
        values: Values = dict(zip(body.args, [index, *carried], strict=False))
        for op in self.others():
            if _comes_before(op, first) and op not in self.halves.late | self.halves.packing:
                self.copy(b, op, values)
        if before is None:
            self.filled(b, 0, slot, phase)
            begun, total = self.begin(b, 0, values, slot), None
        else:
            self.turn(b, "take")
            self.filled(b, 0, slot, phase)
            begun = self.begin(b, 0, values, slot)
            total = self.last_half(b, *before)
            self.turn(b, "pass")
        values[first.d] = first.wait(b, [begun], int(total is not None)).results[0]
        self.released(b, 0, slot)
        behind = self.halves.late | self.halves.packing
        between = [op for op in self.others() if not _comes_before(op, first) and op not in behind]
        ahead = _through_first(between, tt.ReduceOp) if self.follows else len(between)  # the product ends meanwhile
        for op in between[:ahead]:
            self.copy(b, op, values)
        if not self.follows:
            self.filled(b, 1, slot, phase)  # a branch, so that ptxas lets no wait for the product come before it
        if total is not None and before is not None:
            values[body.args[k + 1]] = last.wait(b, [total], 0).results[0]
            self.released(b, 1, before[2])
        for op in between[ahead:]:
            self.copy(b, op, values)
        for op in body.ops:
            if op in behind:
                self.copy(b, op, values)
        on = [values.get(x, x) for x in end.operands]
        on[k] = values.get(last.c, last.c)
        return on, values.get(last.a, last.a)

    @property
    def follows(self) -> bool:
        """Whether what is between the products begins when both have ended: see `Halves`."""
        return self.halves is not None and self.halves.follows and self.warps == TWO_GROUPS

    def turn(self, b: Builder, step: str) -> None:
        """Two warp groups begin their products in turn: what is between the products of one runs beside the other's."""
        if self.warps == TWO_GROUPS:
            b.create(ttng.WarpGroupTurnOp, (), (), {"step": StringAttr(step)})

    def last_half(self, b: Builder, total: SSAValue, left: SSAValue, slot: SSAValue, phase: SSAValue) -> SSAValue:
        """Begin the last product of an iteration; its result."""
        last = self.products[1]
        if self.follows:
            self.filled(b, 1, slot, phase)
        return self.begin(b, 1, {last.c: total, last.a: left}, slot)


def _stored_before(product: SharedProductOp) -> bool:
    """Whether threads have stored an operand of a product of a loop before it."""
    for memory in (product.a, product.b):
        op = memory.owner
        while isinstance(op, ttg.MemDescTransOp):
            op = op.operands[0].owner
        if isinstance(op, ttg.LocalAllocOp) and op.src is not None and op.parent is not product.parent:
            return True
    return False


def _stop_idle(loop: scf.ForOp) -> None:
    """Let a loop carry on unchanged what nothing but its own next value is made of: pointers, whose loads are gone."""
    body = loop.body.block
    end = body.last_op
    assert end is not None
    for i, (argument, result) in enumerate(zip(body.args[1 : len(loop.results) + 1], loop.results, strict=True)):
        made = made_of(argument, body) - {end}
        values = [argument, *(r for op in made for r in op.results)]
        only_there = all(u.index == i for v in values for u in v.uses if u.operation is end)
        if result.first_use is None and only_there and all(map(shareable, made)):
            end.operands[i] = argument


def _name_like(block: Block, other: Block) -> None:
    """Give a loop's counter, and what it carries, the names that they have in another body of it."""
    for new, old in zip(block.args, other.args, strict=False):
        new.name_hint = old.name_hint


def _comes_before(op: Operation, other: Operation) -> bool:
    at: Operation | None = op
    while at is not None:
        if at is other:
            return True
        at = at.next_op
    return False


def _through_first(ops: Sequence[Operation], kind: type[Operation]) -> int:
    """How many operations there are up to the first of a kind, with it; 0 if there is none."""
    return next((i + 1 for i, op in enumerate(ops) if isinstance(op, kind)), 0)
