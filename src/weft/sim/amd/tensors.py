"""Copies by gfx1250's tensor data mover, simulated: tiles that travel while the program goes on.

A copy is done when it is issued ("earliest"), or when its wave has waited for it, or nobody could go on without the
mbarrier at which it arrives ("latest"); the copies of a wave end in their order, and s_wait_tensorcnt counts them. Who
writes what a store still reads, or reads what a load has not brought, is told.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from weft.ir.lane import LaneOp
from weft.targets.amd import TENSOR_WAIT, Tile
from weft.targets.instruction import Instruction

from ..access import need_defined
from ..errors import BulkCopyError, OutOfBoundsError, UninitializedError
from ..machine import Batch, Context, Flight, Wait
from ..reach import Reach
from ..values import Array, full
from .barriers import Barrier, arrive, barrier_at

UNDER_WAY = "wait for every copy with tdm.async_wait before the program ends"


def copy(context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait]:
    """tensor_load_to_lds and tensor_store_from_lds: of each wave one tile, by what its first lane says."""
    batch = context.batch
    batch.report.add_kind(op.span, entry.name, context.count)
    if batch.remembered is not None:
        batch.remembered.forget()
        return
    active: Array = np.ones((context.count, batch.lanes, 1), np.bool_)
    for value, operand in zip(op.operands, entry.operands, strict=True):
        need_defined(context, op, value, f"`{operand.name}` of a copy of a tile", active)
    words = [full(context.env[v].data, context.count, batch.lanes)[:, 0].tolist() for v in op.operands]
    for row in range(context.count):
        _, place, *groups = (group[row] for group in words[: len(entry.operands) - entry.name.endswith(".arriving")])
        tile = Tile.decoded(place, *groups)
        if tile.enabled:
            barrier = barrier_at(context, op, row, tile.barrier) if tile.barrier >= 0 else None
            _Copy(context, op, row, tile, barrier, loads=entry.stores).begin()
    if len(batch.contexts) > 1 and batch.options.order == "random":
        yield Wait(lambda: True, "its turn", op.span)


def wait(context: Context, op: LaneOp) -> Iterator[Wait]:
    """s_wait_tensorcnt: all copies of these waves but the last ones are done. Accesses are done at once."""
    batch = context.batch
    batch.report.add_kind(op.span, op.attrs["isa"], context.count)
    yield from ()
    if op.attrs["isa"] != TENSOR_WAIT:
        return
    pending = int(context.env[op.operands[0]].data.flat[0])
    for warp in (int(w) for w in context.warps):
        own = [x for x in batch.bulk_stores if x.warp == warp]
        for done in own[: max(0, len(own) - pending)]:
            done.end()
            batch.bulk_stores.remove(done)


def finish(batch: Batch) -> None:
    """The program has ended: a copy that nobody has waited for is an error."""
    for left in (x for x in batch.bulk_stores if x.arrived_at is None):
        text = "a copy by the tensor data mover that is never waited for may be in flight when the program ends"
        left.fail(BulkCopyError, text, left.tile.shared, hint=UNDER_WAY)
        left.end()
    batch.bulk_stores = []


class _Copy:
    """One tile of one wave, from its issue to its end."""

    def __init__(
        self, context: Context, op: LaneOp, row: int, tile: Tile, barrier: Barrier | None, *, loads: bool
    ) -> None:
        self.batch, self.op, self.tile, self.loads = context.batch, op, tile, loads
        self.barrier = barrier
        self.arrived_at: tuple[Barrier, int] | None = None
        """The barrier that has been told that it is done, and the phase then."""
        self.warp, self.thread = int(context.warps[row]), context.thread(row, 0)
        self.address, self.inside, shared = tile.elements()
        base = self.warp // self.batch.program.warps * self.batch.stride
        self.place = shared[:, None] + np.arange(tile.width) + base
        self.data: Array | None = None
        """What a store has read."""

    def fail(self, kind: type, message: str, address: int, space: str = "shared", hint: str = "") -> None:
        error = kind(message, self.op.span, thread=self.thread, address=address, space=space, hint=hint)
        self.batch.launch.error(error)

    def reach(self) -> Reach:
        return Reach(self.batch, self.op, self.thread, self.warp, 0, self.place)

    def begin(self) -> None:
        """Check it; with "earliest", its memory is read and written now."""
        batch, memory = self.batch, self.batch.launch.memory
        last = int(self.place.max()) - self.warp // batch.program.warps * batch.stride
        if self.tile.shared < 0 or last >= batch.program.shared_bytes:
            size = batch.program.shared_bytes
            text = f"a copy of bytes {self.tile.shared} to {last} of shared memory, which has {size}"
            self.fail(OutOfBoundsError, text, self.tile.shared)
            return
        wrong = self.inside & memory.outside(self.address, self.tile.width)
        if wrong.any():
            first = int(self.address[wrong][0])
            text = f"a copy of elements outside of every array, at {first:#x}: {memory.describe(first)}"
            self.fail(OutOfBoundsError, text, first, "global")
            self.inside &= ~wrong
        if batch.options.races:
            reach = self.reach()
            if self.loads:
                reach.write(pending=True, proxy=False)
            else:
                reach.read(proxy=False)
                batch.shadow.fly(reach.granules, batch.shadow.site(self.op))
        batch.bulk_stores.append(self)
        if self.barrier is not None:
            self.barrier.join(batch.shadow.clocks.release(self.warp))  # the waits before it, above all
        if batch.options.copies == "earliest":
            self.move()
            self.arrive()
        elif self.barrier is not None:
            batch.flights.append(Flight("a copy of a tile", self.arrive))

    def move(self) -> None:
        """The bytes."""
        batch, width = self.batch, self.tile.width
        if self.data is not None:
            return
        self.data = np.zeros((len(self.address), width), np.uint8)
        if self.loads:
            if self.inside.any():
                self.data[self.inside] = batch.launch.memory.read(self.address[self.inside], width)
            batch.shared[self.place], batch.state[self.place] = self.data, 1
            return
        state = batch.state[self.place]
        wrong = (state != 1).any(axis=1) & self.inside
        if batch.options.uninitialized and wrong.any():
            first = int(self.place[wrong][0, 0]) % batch.stride
            reason = "was never written" if (state[wrong] == 0).any() else "holds an undefined value"
            self.fail(UninitializedError, f"a copy reads byte {first} of shared memory, which {reason}", first)
        self.data = batch.shared[self.place]
        if self.inside.any():
            batch.launch.memory.write(self.address[self.inside], self.data[self.inside])

    def arrive(self) -> None:
        """It is done, and with it those that its wave began before: whoever sees the phase end knows."""
        if self.barrier is None or self.arrived_at is not None:
            return
        own = [x for x in self.batch.bulk_stores if x.warp == self.warp]
        before = own[: own.index(self)] if self in own else []
        for done in before:
            done.arrive()
        for done in [*before, self]:
            done.move()
            if done.arrived_at is None and (done.loads or done is self):
                done.arrived_at = self.barrier, self.barrier.phase
                if self.batch.options.races:
                    self.batch.shadow.arrived(done.reach().granules, self.barrier.actor, self.barrier.phase)
        arrive(self.batch, self.op, self.barrier, self.warp)

    def end(self) -> None:
        """Its wave knows that it is done."""
        self.move()
        self.arrive()
        if not self.batch.options.races:
            return
        if self.arrived_at is not None:  # of all that has arrived in this phase, in truth of its own copies alone
            barrier, phase = self.arrived_at
            self.batch.shadow.clocks.phases(self.warp, barrier.actor, phase + 1)
            return
        reach = self.reach()
        if self.loads:
            count = len(reach.granules)
            self.batch.shadow.landed(reach.granules, np.full(count, self.warp), np.zeros(count, np.int64))
        else:
            self.batch.shadow.land(reach.granules, self.warp, self.batch.shadow.site(self.op))
