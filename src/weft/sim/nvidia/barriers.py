"""mbarriers: arrivals and bytes, who has seen which phase end, and what is wrong when nobody goes on.

Each barrier remembers the operations that made it, announced bytes and arrived, so that an error names both sites. What
those who arrived have done is known to those who see the phase end, and only that: arrivals at the next phase are kept
apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp
from weft.targets.nvidia import MBarrier, MBarrierError

from ..access import CLUSTER_BITS
from ..errors import BarrierMisuseError, RaceError, Thread
from ..machine import Batch, Context, Flight, Wait
from ..reach import Reach
from ..values import Array, Fragment, full

COPIES = ("copies.arrive", "copies.arrive.noinc")


@dataclass
class Barrier:
    """An mbarrier of one block: its state, and what those who arrived have done, [clocks, actor]."""

    state: MBarrier
    made: LaneOp
    actor: int
    current: Array
    """Known to those who see the phase end that is under way."""
    ended: Array
    """Known to those who have seen the last phase end."""
    announced: LaneOp | None = None
    bytes_announced: int = 0
    """In the phase that is under way."""
    bytes_come: int = 0
    copied: LaneOp | None = None
    """The copy that came last."""
    arrived: LaneOp | None = None
    waits: dict[int, tuple[int, int, LaneOp]] = field(default_factory=dict)
    """Of each warp the phase that it has seen end last, its clock then, and where it waited."""

    def join(self, known: Array) -> None:
        """One who knows this arrives."""
        if known.shape[1] > self.current.shape[1]:
            self.current = _wider(self.current, known.shape[1])
        clocks = self.current[:, : known.shape[1]]
        np.maximum(clocks, known, out=clocks)

    def changed(self, phase: int) -> None:
        """To be called after each change: `phase` is what it was before."""
        if self.state.phase != phase:
            self.ended = self.current.copy()
            self.bytes_announced = self.bytes_come = 0

    def overtaken(self, warps: int) -> tuple[int, LaneOp] | None:
        """A warp that may not have seen the phase before the last end, when the last ended: parities are the same."""
        for warp, (phase, clock, op) in self.waits.items():
            if phase == self.state.phase - 2 and self.current[0, warp % warps] <= clock:
                return warp, op
        return None

    def missing(self) -> str:
        """Why the phase that is under way does not end."""
        lacking = []
        if self.state.pending:
            come = self.state.expected - self.state.pending
            lacking.append(f"{come} of {self.state.expected} arrivals have come")
        if self.state.bytes:
            lacking.append(f"{self.bytes_announced} bytes were announced and {self.bytes_come} have come")
        return ", and ".join(lacking) or "it has ended"

    def notes(self) -> list[Note]:
        """The operations that have to do with it."""
        count = self.state.expected
        notes = [Note(f"made here, for {count} arrival{'s' if count > 1 else ''} in each phase", self.made.span)]
        if self.arrived is not None and self.arrived is not self.announced:
            notes.append(Note("the last arrival was here", self.arrived.span))
        if self.announced is not None:
            notes.append(Note("bytes were announced here last", self.announced.span))
        if self.copied is not None:
            notes.append(Note("a copy brought bytes from here", self.copied.span))
        return notes


def _wider(x: Array, actors: int) -> Array:
    return np.pad(x, ((0, 0), (0, actors - x.shape[1])))


def _key(context: Context, row: int, address: int, block: int | None) -> tuple[int, int]:
    """A barrier of the row-th warp's block, or of another one of the batch."""
    return int(context.warps[row]) // context.batch.program.warps if block is None else block, address


def barrier_at(context: Context, row: int, address: int, block: int | None = None) -> Barrier:
    """The barrier at an address of the row-th warp's block, or of another; MBarrierError if there is none."""
    key = _key(context, row, address, block)
    barrier: Barrier | None = context.batch.barriers.get(key)
    if barrier is None:
        former: LaneOp | None = context.batch.former.get(key)
        raise NoBarrier(f"there is no mbarrier at byte {address} of shared memory", former)
    return barrier


class NoBarrier(MBarrierError):
    """There is none; `former` is the operation that made an end of the one that was."""

    def __init__(self, message: str, former: LaneOp | None) -> None:
        super().__init__(message)
        self.former = former


def misused(
    context: Context,
    op: LaneOp,
    row: int,
    lane: int,
    address: int,
    error: MBarrierError,
    block: int | None = None,
) -> None:
    """Report it, with the other site."""
    key = _key(context, row, address, block)
    others: list[Note] = []
    if key in context.batch.barriers:
        others = [Note("initialised here", context.batch.barriers[key].made.span)]
    elif isinstance(error, NoBarrier) and error.former is not None:
        others = [Note("invalidated here", error.former.span)]
    context.batch.launch.error(
        BarrierMisuseError(str(error), op.span, thread=context.thread(row, lane), address=address, others=others)
    )


# -- operations -------------------------------------------------------------------------------------------------------


def mbarrier(context: Context, op: LaneOp) -> Iterator[Wait]:
    """mbarrier.*: waits are for whole warps, the others for the lanes whose `active` holds."""
    batch, kind = context.batch, op.attrs["isa"].partition(".")[2]
    batch.report.add_kind(op.span, op.attrs["isa"], context.count)
    if batch.launch.counting:
        for value in op.results:
            context.env.values[value] = Fragment(np.zeros((1, 1, 1), np.int32), None, False)
        return
    shape = (context.count, batch.lanes)
    address, *rest = (full(context.env[v].data, *shape)[:, :, 0] for v in op.operands)
    if kind in ("wait.parity", "wait.parity.awake", "wait.parity.cluster", "try_wait.parity"):
        yield from _wait(context, op, address[:, 0].tolist(), rest[0][:, 0].tolist(), kind != "try_wait.parity")
        return
    if kind in COPIES:
        _after_copies(context, op, address, kind.endswith("noinc"))
        return
    for row, lane in zip(*(x.tolist() for x in np.nonzero(rest[-1])), strict=True):
        amount = int(rest[0][row, lane]) if len(rest) > 1 else 0
        place, block = int(address[row, lane]), None
        if kind.endswith(".remote"):
            own_block = np.array([int(context.warps[row]) // batch.program.warps])
            ranks = np.clip(np.array([(place >> CLUSTER_BITS) - 1]), 0, batch.program.blocks - 1)
            place, block = place & (1 << CLUSTER_BITS) - 1, int(batch.block_of_rank(own_block, ranks)[0])
        try:
            _act(context, op, kind.removesuffix(".remote"), row, lane, place, amount, block)
        except MBarrierError as found:
            misused(context, op, row, lane, place, found, block)
    if len(batch.contexts) > 1 and batch.options.order == "random":  # others may see it before the next step
        yield Wait(lambda: True, "its turn", op.span)


def _act(
    context: Context, op: LaneOp, kind: str, row: int, lane: int, address: int, amount: int, block: int | None = None
) -> None:
    """What one lane does at an mbarrier, of its own block or of another one."""
    batch = context.batch
    warp = int(context.warps[row])
    key = _key(context, row, address, block)
    if kind == "init":
        _init(context, op, key, amount)
        touch(context, op, row, lane, address, True)
        return
    barrier = barrier_at(context, row, address, block)
    touch(context, op, row, lane, address, kind == "inval", block=block)
    if kind == "inval":
        del batch.barriers[key]
        batch.former[key] = op
        return
    phase = barrier.state.phase
    if kind in ("expect_tx", "arrive.expect_tx"):
        barrier.announced = op
        barrier.bytes_announced += amount
        barrier.state.expect_tx(amount)
    if kind != "expect_tx":
        barrier.join(batch.shadow.clocks.release(warp, lane))
        barrier.arrived = op
        barrier.state.arrive(amount if kind == "arrive" else 1)
    barrier.changed(phase)
    if barrier.state.phase != phase and batch.options.races:
        check_overtaken(context.batch, op, context.thread(row, lane), address, barrier)


def check_overtaken(batch: Batch, op: LaneOp, thread: Thread, address: int, barrier: Barrier) -> None:
    """Whoever waits by parity must have seen a phase end before the next one does."""
    overtaken = barrier.overtaken(batch.shadow.clocks.warps)
    if overtaken is None:
        return
    warp, wait = overtaken
    text = (
        f"race: phase {barrier.state.phase - 1} of the mbarrier at byte {address} ends, and warp "
        f"{warp % batch.program.warps} may still wait for the phase before it, which has the other parity"
    )
    note = Note("the wait, which is not ordered with any arrival at the next phase", wait.span)
    batch.launch.error(RaceError(text, op.span, thread=thread, address=address, space="shared", others=(note,)))


def touch(
    context: Context,
    op: LaneOp,
    row: int,
    lane: int,
    address: int,
    writes: bool,
    proxy: bool = False,
    block: int | None = None,
    sends: bool = False,
) -> None:
    """An mbarrier is eight bytes of memory: who uses it must be ordered with who makes it, and makes an end of it.

    Who `sends` is done with it when what is sent arrives, which is looked at then.
    """
    batch = context.batch
    if not batch.options.races:
        return
    warp = int(context.warps[row])
    place = np.arange(8) + address + _key(context, row, address, block)[0] * batch.stride
    reach = Reach(batch, op, context.thread(row, lane), warp, lane, place)
    if writes:
        reach.write(proxy=False)
    elif sends:
        reach.see(proxy)
    else:
        reach.read(proxy)


def _init(context: Context, op: LaneOp, key: tuple[int, int], count: int) -> None:
    batch = context.batch
    if key in batch.barriers:
        raise MBarrierError(f"the mbarrier at byte {key[1]} is initialised again without having been invalidated")
    if key[1] % 8:
        raise MBarrierError(f"an mbarrier must be at a multiple of 8 bytes, got {key[1]}")
    state = MBarrier.init(count)
    cluster = key[0] // batch.program.blocks
    actor = batch.shadow.clocks.column(batch.barriers_made[cluster])
    batch.barriers_made[cluster] += 1
    empty = np.zeros((3, batch.shadow.clocks.warps), np.int32)
    batch.barriers[key] = Barrier(state, op, actor, empty, empty)


def _after_copies(context: Context, op: LaneOp, address: Array, counted: bool) -> None:
    """Each lane arrives when its copies so far are done; not `counted` in advance, it makes room for itself first."""
    batch = context.batch
    for row in range(context.count):
        for lane in range(batch.lanes):
            try:
                barrier = barrier_at(context, row, int(address[row, lane]))
            except MBarrierError as found:
                misused(context, op, row, lane, int(address[row, lane]), found)
                return
            if not counted:
                barrier.state.pending += 1
    _arrive_later(context, address)


def _arrive_later(context: Context, address: Array) -> None:
    """When the copies that these warps have issued are done."""
    batch = context.batch
    taken: list[tuple[Array, ...]] = []
    left: list[tuple[Array, ...]] = []
    for entry in batch.copies:
        chosen = np.isin(entry[0], context.warps)
        for part, target in ((chosen, taken), (~chosen, left)):
            if part.any():
                target.append(tuple(x[part] for x in entry))
    batch.copies = left
    keys = {
        (int(w), lane): (int(w) // batch.program.warps, int(address[row, lane]))
        for row, w in enumerate(context.warps)
        for lane in range(batch.lanes)
    }

    def land() -> None:
        for warp, lane, _, at, data in taken:
            batch.shared[at], batch.state[at] = data, 1
            if batch.options.races:
                _counted(batch, [keys[int(w), int(k)] for w, k in zip(warp, lane, strict=True)], at)
        for key in keys.values():
            barrier = batch.barriers.get(key)
            if barrier is not None:
                phase = barrier.state.phase
                barrier.state.arrive(1)
                barrier.changed(phase)

    if batch.options.copies == "earliest":
        land()
    else:
        batch.flights.append(Flight("asynchronous copies", land))


def _counted(batch: Batch, keys: list[tuple[int, int]], at: Array) -> None:
    """Copies are seen by who sees the phase of their mbarrier end."""
    for key in dict.fromkeys(keys):
        barrier = batch.barriers.get(key)
        if barrier is not None:
            rows = [i for i, k in enumerate(keys) if k == key]
            batch.shadow.arrived(np.unique(at[rows] // batch.granule), barrier.actor, barrier.state.phase)


def _wait(context: Context, op: LaneOp, address: list[int], parity: list[int], block: bool) -> Iterator[Wait]:
    batch = context.batch
    barriers: list[Barrier] = []
    for row in range(context.count):
        try:
            barriers.append(barrier_at(context, row, int(address[row])))
        except MBarrierError as found:
            misused(context, op, row, 0, int(address[row]), found)
            for value in op.results:
                context.env.values[value] = Fragment(np.ones((1, 1, 1), np.int32))
            return

    for row in range(context.count):
        touch(context, op, row, 0, int(address[row]), False)

    def ready() -> bool:
        return all(b.state.try_wait(parity[row]) for row, b in enumerate(barriers))

    def late() -> tuple[str, list[Note]]:
        row, b = next((row, b) for row, b in enumerate(barriers) if not b.state.try_wait(parity[row]))
        return f"phase {b.state.phase} of the mbarrier at byte {address[row]}: {b.missing()}", b.notes()

    if block and not ready():
        yield Wait(ready, "an mbarrier", op.span, late=late)
    done = np.array([b.state.try_wait(parity[row]) for row, b in enumerate(barriers)], np.int32)
    if not block and not done.all():
        yield Wait(lambda: True, "its turn", op.span, idle=True)
        done = np.array([b.state.try_wait(parity[row]) for row, b in enumerate(barriers)], np.int32)
    for row, barrier in enumerate(barriers):
        if done[row]:
            warp = int(context.warps[row])
            barrier.waits[warp] = (barrier.state.phase - 1, int(batch.shadow.clocks.now(np.array([warp]))[0]), op)
            batch.shadow.clocks.acquire(warp, barrier.ended)
            batch.shadow.clocks.phases(warp, barrier.actor, barrier.state.phase)
    for value in op.results:
        context.env.values[value] = Fragment(done[:, None, None])
