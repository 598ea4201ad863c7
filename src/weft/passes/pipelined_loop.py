"""Write a loop whose loads are copies begun iterations ahead, once `pipeline_loads` has chosen the loads.

With three stages and three buffers for `%a = tt.load %p`, iteration 4 of such a loop

    waits for the copy of iteration 4, and reads slot 1         4 modulo 3
    begins the copy of iteration 6, to slot 0                   6 modulo 3, which iteration 3 read

so the loop carries a slot for each number of buffers, and the values from which addresses are computed for two
iterations ahead (loop_slices.py). The copies of iterations 0 and 1 are begun before the loop. The mask of a copy past
the end is false.

If a loop is known to have fewer iterations than stages, all copies are begun before it, each to a buffer of its own.

Some copies may be made by a `CopyEngine` instead of the threads. It counts the bytes that have arrived in a slot, so
the loop also carries the parity of its rounds through the slots (`%phase`: 0, 0, 0, 1, 1, 1, 0, ...).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft.ir import Builder, bit_width, element_of, i1, i32, i32_attr, like, segments, shape_of, tt
from weft.ir.gpu import MemDescType, async_token, memdesc, ttg
from weft.ir.gpu.products import OperandFenceOp, SharedProductOp
from weft.layouts import SharedLayout
from weft.machines import Machine

from . import overlap_products as overlap
from .buffered_tiles import is_thin, read_instead
from .copy_engine import CopyEngine
from .loop_slices import Slice, is_there, slice_of
from .removal import remove
from .unroll_loops import known_iterations

MANY_BLOCKS = 3
"""With so many blocks on a multiprocessor, others have copies in flight while one waits for its own."""


@dataclass(frozen=True)
class CopiedLoad:
    """A load that becomes copies, and its buffers."""

    load: tt.LoadOp
    layout: SharedLayout

    @property
    def bytes(self) -> int:
        """The size of one buffer."""
        return prod(shape_of(self.load.result.type)) * bit_width(element_of(self.load.result.type)) // 8

    def memory(self, count: int = 0) -> MemDescType:
        """The type of the buffers, or of one."""
        shape = shape_of(self.load.result.type)
        whole = (count, *shape) if count else shape
        return memdesc(whole, element_of(self.load.result.type), self.layout)


def inputs_of(op: tt.LoadOp) -> list[SSAValue]:
    """The values of an iteration that a copy in the place of a load needs."""
    return [op.ptr] if op.mask is None else [op.ptr, op.mask]


def where_there(b: Builder, mask: SSAValue, exists: SSAValue) -> SSAValue:
    """A mask that is false everywhere if the iteration does not exist.

    Of a mask that is the conjunction of a tile of rows, which the loop does not change, and a row of columns, the row
    becomes false: that is one operation for all rows.
    """
    op = mask.owner
    if isinstance(op, arith.AndIOp):
        kept, changed = sorted(op.operands, key=lambda x: _is_narrow_here(b, x))
        if _is_narrow_here(b, changed):
            return b.binary(arith.AndIOp, kept, where_there(b, changed, exists))
    if isinstance(op, tt.BroadcastOp) and _is_narrow_here(b, mask):
        return b.create(tt.BroadcastOp, (where_there(b, op.operands[0], exists),), (mask.type,)).results[0]
    return b.binary(arith.AndIOp, mask, _spread(b, exists, mask.type))


def _spread(b: Builder, exists: SSAValue, type: Attribute) -> SSAValue:
    return b.create(tt.SplatOp, (exists,), (type,)).results[0]


def _is_narrow_here(b: Builder, mask: SSAValue) -> bool:
    """Whether a mask is computed where `b` is, of fewer elements than it has."""
    op = mask.owner
    if isinstance(op, arith.AndIOp):
        return any(_is_narrow_here(b, x) for x in op.operands)
    return isinstance(op, tt.BroadcastOp) and _is_made_in(op.operands[0], b.block)


def _is_made_in(value: SSAValue, block: Block | None) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is block


class PipelinedLoop:
    """A loop, and those of its loads that are copied ahead."""

    def __init__(
        self,
        loop: scf.ForOp,
        copied: Sequence[CopiedLoad],
        stages: int,
        counts: Sequence[int],
        machine: Machine,
        by_twos: bool,
        in_registers: bool = False,
        engine: CopyEngine | None = None,
        blocks: int = 1,
        registers: int = 0,
        lands_early: bool = False,
        free: Mapping[SSAValue, Operation] = MappingProxyType({}),
    ) -> None:
        """`blocks`: how many a multiprocessor runs at a time, as far as is known; each thread has so many `registers`
        then. Copies of the next iteration are awaited before those of the one after begin, if that may be, where
        `lands_early` (early_landing.py). Loaded tiles that are `free` have a buffer less than stages, and their copies
        begin behind an operation (early_free.py)."""
        self.loop, self.copied, self.stages, self.counts = loop, copied, stages, counts
        self.machine, self.by_twos, self.in_registers, self.engine = machine, by_twos, in_registers, engine
        self.blocks, self.registers, self.lands_early = blocks, registers, lands_early
        self.by_threads = [c for c in copied if engine is None or c.load not in engine.loads]
        self.free = {c.load: free[c.load.result] for c in copied if c.load.result in free}
        given = engine.inputs if engine is not None else ()
        part = slice_of(loop, [*given, *(x for c in self.by_threads for x in inputs_of(c.load))])
        assert part is not None  # each of them has one
        self.slice: Slice = part
        self.buffers: list[SSAValue] = []
        iterations = known_iterations(loop)
        self.is_begun = iterations is not None and iterations < stages
        self.product = next((op for op in loop.body.block.ops if isinstance(op, SharedProductOp)), None)

    def rewrite(self) -> str:
        """Write the loop, with copies before, in and after it. Returns, in words, how products overlap iterations."""
        b = Builder.before(self.loop)
        for c, count in zip(self.copied, self.counts, strict=True):
            self.buffers.append(b.create(ttg.LocalAllocOp, (), (self.memory(c, count),)).result)
        if self.engine is not None:
            self.engine.prepare(b, max(self.counts))
        lower, _, step = self.loop.operands[:3]
        index: SSAValue = lower
        states: Mapping[int, SSAValue] = {i: self.loop.operands[3 + i] for i in self.slice.carried}
        for k in range(self.stages - 1):
            if k:
                index = b.create(arith.AddiOp, (index, step), (index.type,)).result
            slots_of = dict.fromkeys(self.counts, b.constant(k, i32))
            states = self.begin(b, index, states, slots_of, k)
        slots, parity, ahead = self.carry(b, states, self.by_twos)
        first = next(op for op in self.loop.body.block.ops if op in {c.load for c in self.copied})
        looked_up: Builder | None = None
        landed = anchor = self.landed(first, slots)
        all_go_on = overlap.all_go_on(self.loop)
        stored = overlap.stored_operands(self.loop) if parity is not None else []
        if parity is not None and stored:
            how = "the product goes on while operands are stored to the other of two buffers"
            anchor = overlap.overlap_stores(self.loop, stored, parity)
        elif max(self.counts) > self.stages and overlap.overlaps_two_iterations(self.loop, frozenset()):
            how = "two iterations' products are under way at a time"
            anchor = overlap.overlap_two_iterations(self.loop, self.waits)
        elif (overlaps := overlap.overlap_products(self.loop, self.registers, self.is_one_of_many())) is not None:
            how, anchor = "the last product goes on until the first of the next iteration has begun", overlaps
            if landed is not self.waits and all_go_on and self.engine is None and self.lands_early:
                looked_up = Builder.after(landed)
                anchor = self.land_early(landed, anchor)
        else:
            how = "none, as the iteration uses the result, or the operands do not outlast it"
            anchor = overlap.begin_product(self.loop) or anchor
        if self.in_registers:
            anchor = self.last_read(anchor)
        end = self.loop.body.block.last_op
        assert end is not None
        if self.slice.lookups:
            self.iteration(Builder.before(end), slots, parity, ahead, looked_up or Builder.after(landed))
        elif max(self.counts) < self.stages and not self.in_registers and not self.free:
            self.iteration(Builder.before(end), slots, parity, ahead)
        else:
            self.iteration(Builder.after(anchor), slots, parity, ahead)
            if self.engine is not None:
                self.read_late()
        if self.by_threads:
            Builder.after(self.loop).create(ttg.AsyncWaitOp, (), (async_token,), {"num": i32_attr(0)})
        return how if self.product is not None else ""

    def memory(self, c: CopiedLoad, count: int = 0) -> MemDescType:
        """The type of the buffers of a load, or of one."""
        if self.engine is not None and c.load in self.engine.loads:
            return self.engine.memory(c.load, count)
        return c.memory(count)

    def in_slot(self, b: Builder, c: CopiedLoad, buffers: SSAValue, slot: SSAValue) -> SSAValue:
        """The buffer of a load in a slot."""
        return b.create(ttg.MemDescIndexOp, (buffers, slot), (self.memory(c),)).result

    def tile(self, b: Builder, c: CopiedLoad, buffer: SSAValue) -> SSAValue:
        """The tile of a load in one of its buffers."""
        if self.engine is not None and c.load in self.engine.loads:
            return self.engine.tile(b, c.load, buffer)
        return buffer

    def begin(
        self,
        b: Builder,
        index: SSAValue,
        states: Mapping[int, SSAValue],
        slots: Mapping[int, SSAValue],
        iteration: int,
        early: Builder | None = None,
        late: Mapping[Operation, Collection[tt.LoadOp]] = MappingProxyType({}),
    ) -> Mapping[int, SSAValue]:
        """The copies of one iteration, to the slots among so many buffers; the carried values of the next. What is
        looked up comes where `early` is, and the copies of some loads behind operations."""
        exists = is_there(self.loop, early or b, iteration) if self.slice.lookups else None
        values, after = self.slice.clone(b, index, states, exists, early)
        exists = is_there(self.loop, b, iteration) if exists is None else exists
        places = zip(self.copied, self.buffers, self.counts, strict=True)
        of = {c.load: (c, buffers, slots[n]) for c, buffers, n in places}
        first = b
        loads = [c.load for c in self.copied if not any(c.load in some for some in late.values())]
        for b, some in ((first, loads), *((Builder.after(op), some) for op, some in late.items())):
            if self.engine is not None:
                tiles = {load: self.in_slot(b, *of[load]) for load in self.engine.loads if load in some}
                if b is first:
                    landed = self.engine.expect(b, slots[max(self.counts)], exists)
                self.engine.begin(b, landed, tiles, values, exists)
            self._begin_by_threads(b, [c for c in self.by_threads if c.load in some], of, values, exists)
        if self.by_threads:
            b.create(ttg.AsyncCommitGroupOp, (), (async_token,))
        return after

    def _begin_by_threads(
        self,
        b: Builder,
        copied: Sequence[CopiedLoad],
        of: Mapping[tt.LoadOp, tuple[CopiedLoad, SSAValue, SSAValue]],
        values: Mapping[SSAValue, SSAValue],
        exists: SSAValue,
    ) -> None:
        """Copies of some loads by the threads."""
        for c in copied:
            pointer, mask = c.load.ptr, c.load.mask
            pointer = values.get(pointer, pointer)
            if mask is None:
                active = _spread(b, exists, like(pointer.type, i1))
            else:
                active = where_there(b, values.get(mask, mask), exists)
            to = self.in_slot(b, *of[c.load])
            kept = {k: v for k, v in c.load.properties.items() if k in ("cache", "evict")}
            sizes = {"operandSegmentSizes": segments(1, 1, 1, 0)}
            copy = b.create(ttg.AsyncCopyGlobalToLocalOp, (pointer, to, active), (async_token,), {**kept, **sizes})
            copy.location = c.load.location

    def carry(
        self, b: Builder, states: Mapping[int, SSAValue], by_twos: bool
    ) -> tuple[dict[int, SSAValue], SSAValue | None, dict[int, SSAValue]]:
        """Let the loop carry the slot among so many buffers, for iterations by twos which of the two it is, which time
        it goes round the slots of a copy engine, and what addresses are made of.
        """
        old, body = self.loop, self.loop.body.block
        several = sorted(set(self.counts))
        first = len(several) + by_twos + (self.engine is not None)
        extra = [b.constant(0, i32)] * first + [*states.values()]
        arguments = [body.insert_arg(x.type, len(body.args)) for x in extra]
        new = scf.ForOp.create(
            operands=[*old.operands, *extra],
            result_types=[*(r.type for r in old.results), *(x.type for x in extra)],
            properties=old.properties,
            attributes=old.attributes,
            location=old.location,
            regions=[old.detach_region(old.regions[0])],
        )
        b.insert(new)
        for result, other in zip(old.results, new.results, strict=False):
            other.name_hint = result.name_hint
            result.replace_all_uses_with(other)
        remove(old)
        assert isinstance(new, scf.ForOp)
        self.loop = new
        slots: dict[int, SSAValue] = dict(zip(several, arguments, strict=False))
        if self.engine is not None:
            self.phase = arguments[first - 1]
            self.phase.name_hint = "phase"
        parity = arguments[len(several)] if by_twos else None
        return slots, parity, dict(zip(states, arguments[first:], strict=True))

    def landed(self, first: Operation, slots: Mapping[int, SSAValue]) -> Operation:
        """Wait for the copies of this iteration, and let what used the loads read them; the last operation of the
        wait.
        """
        b = Builder.before(first)
        waits: list[Operation] = []
        if self.engine is not None:
            waits.append(self.engine.wait(b, slots[max(self.counts)], self.phase))
        if self.by_threads:
            waits.append(b.create(ttg.AsyncWaitOp, (), (async_token,), {"num": i32_attr(self.stages - 2)}))
        self.waits, wait = waits[0], waits[-1]
        each = zip(self.copied, self.buffers, self.counts, strict=True)
        tiles = [self.tile(b, c, self.in_slot(b, c, buffers, slots[n])) for c, buffers, n in each]
        for c, tile in zip(self.copied, tiles, strict=True):
            read_instead(c.load, tile, self.machine)
        if self.product is None or self.is_fenced():
            return wait
        overlap.drop_fences(self.loop)
        if self.engine is not None:  # products see what it has copied
            return wait
        return self.product.fence(Builder.after(wait))

    def _outlasts(self, memory: SSAValue) -> bool:
        """Whether nothing overwrites one of the buffers until the iteration ends."""
        while isinstance(memory.owner, ttg.MemDescTransOp | ttg.MemDescIndexOp):
            memory = memory.owner.operands[0]
        return self.copied[self.buffers.index(memory)].load not in self.free

    def read_late(self) -> None:
        """Read rows where they are first used."""
        body = self.loop.body.block
        place = {op: i for i, op in enumerate(body.ops)}
        for op in list(body.ops):
            if not isinstance(op, ttg.LocalLoadOp) or not is_thin(shape_of(op.result.type)):
                continue
            if self.is_read(op.operands[0]) and self._outlasts(op.operands[0]):
                users = [use.operation for use in op.result.uses]
                if users and all(user in place for user in users):
                    op.detach()  # type: ignore[no-untyped-call]
                    body.insert_op_before(op, min(users, key=lambda user: place[user]))

    def is_one_of_many(self) -> bool:
        """Whether other blocks have products for the matrix units while one computes.

        Of two blocks, one's products come in front of the first one of the other: of queries with heads of 128,
        gradients take 5.82 ms instead of 5.49 by prediction, and with heads of 64, in three blocks, 5.30 for 5.35.
        """
        return self.blocks >= MANY_BLOCKS

    def land_early(self, fence: Operation, products: Operation) -> Operation:
        """Wait for the copies of the next iteration behind the wait for the products of the one before, so that a
        single barrier tells the other warps of both; the fence behind the copies."""
        assert self.product is not None
        place = self.waits.location
        first, b = Builder.before(self.loop), Builder.after(products)
        for builder, pending in ((first, self.stages - 2), (b, self.stages - 3)):
            builder.create(ttg.AsyncWaitOp, (), (async_token,), {"num": i32_attr(pending)}).location = place
        fences = self.product.fence(first), self.product.fence(b)
        for each in fences:
            each.location = place
        first.create(ttg.LocalBarrierOp, (), ())
        remove(fence)
        remove(self.waits)
        return fences[1]

    def last_read(self, landed: Operation) -> Operation:
        """The place where the iteration has its whole slot in registers."""
        ops = list(self.loop.body.block.ops)
        reads = [op for op in itertools.dropwhile(lambda op: op is not landed, ops) if isinstance(op, ttg.LocalLoadOp)]
        return next((op for op in reversed(reads) if self.is_read(op.operands[0])), landed)

    def is_read(self, memory: SSAValue) -> bool:
        """Whether memory is of one of the buffers."""
        while isinstance(memory.owner, ttg.MemDescTransOp | ttg.MemDescIndexOp):
            memory = memory.owner.operands[0]
        return memory in self.buffers

    def is_fenced(self) -> bool:
        """Whether operands that the loop stores are fenced before its first product, and what was copied with them."""
        for op in self.loop.body.block.ops:
            if isinstance(op, OperandFenceOp | SharedProductOp):
                return isinstance(op, OperandFenceOp) and any(
                    isinstance(x, ttg.LocalAllocOp) for x in self.loop.body.block.ops
                )
        return False

    def iteration(
        self,
        b: Builder,
        slots: Mapping[int, SSAValue],
        parity: SSAValue | None,
        ahead: Mapping[int, SSAValue],
        early: Builder | None = None,
    ) -> None:
        """The copies of the iteration ahead, to the slot that was read in the iteration before, or with one buffer less
        than stages in this one; what the loop carries then.
        """
        body = self.loop.body.block
        one = b.constant(1, i32)
        free = {n: self.before(b, slot, n, 1 + n - self.stages) for n, slot in slots.items()}
        index: SSAValue = body.args[0]
        step = self.loop.operands[2]
        near = early or b
        distance = near.binary(arith.MuliOp, step, near.constant(self.stages - 1, step.type))
        index = near.binary(arith.AddiOp, index, distance)
        if self.is_begun:
            after: Mapping[int, SSAValue] = ahead
            if self.by_threads:  # of none, so that as many groups are under way as the wait says
                b.create(ttg.AsyncCommitGroupOp, (), (async_token,))
        else:
            late = {op: [x for x, at in self.free.items() if at is op] for op in body.ops if op in self.free.values()}
            after = self.begin(b, index, ahead, free, self.stages - 1, early, late)
        following = [self.after(b, slot, n) for n, slot in slots.items()]
        end = body.last_op
        assert end is not None
        other = [] if parity is None else [b.binary(arith.SubiOp, one, parity)]
        if self.engine is not None:
            count = max(slots)
            is_last = b.cmpi("eq", slots[count], b.constant(count - 1, i32))
            other.append(b.select(is_last, b.binary(arith.SubiOp, one, self.phase), self.phase))
        end.operands = [*end.operands, *following, *other, *after.values()]

    @staticmethod
    def before(b: Builder, slot: SSAValue, count: int, iterations: int) -> SSAValue:
        """The slot of an earlier iteration."""
        if not iterations:
            return slot
        distance = b.constant(iterations, i32)
        is_early = b.cmpi("slt", slot, distance)
        around = b.constant(count - iterations, i32)
        later = around if iterations == 1 else b.binary(arith.AddiOp, slot, around)
        return b.select(is_early, later, b.binary(arith.SubiOp, slot, distance))

    @staticmethod
    def after(b: Builder, slot: SSAValue, count: int) -> SSAValue:
        """The slot of the next iteration."""
        is_last = b.cmpi("eq", slot, b.constant(count - 1, i32))
        return b.select(is_last, b.constant(0, i32), b.binary(arith.AddiOp, slot, b.constant(1, i32)))
