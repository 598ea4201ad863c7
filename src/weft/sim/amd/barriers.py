"""gfx1250's barriers in local memory, simulated: who arrives, who waits, and who has seen what by that.

What those who arrived have done is known to those who see the phase end, and only that. Where a phase ends among the
lanes of one instruction, the barrier was made for fewer arrivals than there are threads: that is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp
from weft.targets.amd import ARRIVE, COPIES_ARRIVE, INIT, PARITY, made
from weft.targets.instruction import Instruction

from ..errors import BarrierMisuseError, RaceError
from ..machine import Batch, Context, Flight, Wait
from ..reach import Reach
from ..values import Array, Fragment, full

EVERY = "every thread of a warp arrives for itself, and a copy of a block once for each warp"


@dataclass
class Barrier:
    """One of a block."""

    count: int
    """Arrivals of a phase."""
    made: LaneOp
    actor: int
    current: Array
    """What is known to those who see the phase end that is under way: [clocks, actor]."""
    ended: Array
    """Known to those who have seen the last phase end."""
    makers: set[int] = field(default_factory=set)
    come: int = 0
    phase: int = 0
    arrived: LaneOp | None = None
    waits: dict[int, tuple[int, int, LaneOp]] = field(default_factory=dict)
    """Of each warp the phase that it has seen end last, its clock then, and where it waited."""

    @property
    def word(self) -> int:
        """The 64 bits."""
        whole = made(self.count)
        return whole & ~((1 << 32) - 1) | (-self.phase & 7) << PARITY | (self.count - 1 - self.come)

    def over(self, parity: int) -> bool:
        """Whether the phase of this parity is not under way."""
        return self.phase & 1 != parity & 1

    def join(self, known: Array) -> None:
        """One who knows this arrives."""
        if known.shape[1] > self.current.shape[1]:
            self.current = np.pad(self.current, ((0, 0), (0, known.shape[1] - self.current.shape[1])))
        clocks = self.current[:, : known.shape[1]]
        np.maximum(clocks, known, out=clocks)

    def arrive(self, op: LaneOp, count: int) -> bool:
        """So many arrivals; whether the phase has ended by them."""
        self.arrived = op
        self.come += count
        if self.come < self.count:
            return False
        self.come = 0
        self.phase += 1
        self.ended = self.current.copy()
        return True

    def overtaken(self, warps: int) -> tuple[int, LaneOp] | None:
        """A warp that may not have seen the phase before the last end, when the last ended: parities are the same."""
        for warp, (phase, clock, op) in self.waits.items():
            if phase == self.phase - 2 and self.current[0, warp % warps] <= clock:
                return warp, op
        return None


def mbarrier(context: Context, op: LaneOp, entry: Instruction) -> Iterator[Wait]:
    """An entry of `targets/amd/mbarriers.py`, by whole warps."""
    batch = context.batch
    batch.report.add_kind(op.span, entry.name, context.count)
    if batch.launch.counting:
        for value in op.results:
            context.env.values[value] = Fragment(np.zeros((1, 1, 1), np.int64), None, False)
        return
    address, *rest = (full(context.env[v].data, context.count, batch.lanes)[:, 0, 0].tolist() for v in op.operands)
    if entry.name == INIT:
        for row, place in enumerate(address):
            _make(context, op, row, place, (rest[0][row] & (1 << PARITY) - 1) + 1)
        return
    found = [barrier_at(context, op, row, place) for row, place in enumerate(address)]
    barriers = [x for x in found if x is not None]
    if len(barriers) < len(found):
        for value in op.results:
            context.env.values[value] = Fragment(np.zeros((1, 1, 1), np.int64))
        return
    if entry.name == ARRIVE:
        words = np.zeros((context.count, batch.lanes, 1), np.int64)
        for row, barrier in enumerate(barriers):
            warp = int(context.warps[row])
            barrier.join(batch.shadow.clocks.release(warp))
            words[row, :, 0] = _arrive_each(batch, op, barrier, warp, rest[0][row])
        context.env.values[op.results[0]] = Fragment(words)
    elif entry.name == COPIES_ARRIVE:
        for row, barrier in enumerate(barriers):
            warp = int(context.warps[row])
            barrier.join(batch.shadow.clocks.release(warp))  # the waits before it, above all
            _behind_copies(batch, op, barrier, warp)
    else:
        yield from _wait(context, op, barriers, rest[0])
    if len(batch.contexts) > 1 and batch.options.order == "random":  # others may see it before the next step
        yield Wait(lambda: True, "its turn", op.span)


def barrier_at(context: Context, op: LaneOp, row: int, address: int) -> Barrier | None:
    """The barrier at an address of a warp's block; None, and an error, where there is none."""
    batch, warp = context.batch, int(context.warps[row])
    barrier: Barrier | None = batch.barriers.get((warp // batch.program.warps, address))
    if barrier is None:
        text = f"there is no mbarrier at byte {address} of shared memory"
        thread = context.thread(row, 0)
        batch.launch.error(BarrierMisuseError(text, op.span, thread=thread, address=address))
        return None
    _touch(context, op, row, address, writes=False)
    return barrier


def arrive(batch: Batch, op: LaneOp, barrier: Barrier, warp: int, count: int = 1) -> None:
    """So many arrivals of one warp, or of a copy that it has begun."""
    if barrier.arrive(op, count) and batch.options.races:
        _check_overtaken(batch, op, barrier, warp)


def _make(context: Context, op: LaneOp, row: int, address: int, count: int) -> None:
    """All warps store the same; the first one makes the barrier."""
    batch, warp = context.batch, int(context.warps[row])
    block = warp // batch.program.warps
    barrier: Barrier | None = batch.barriers.get((block, address))
    if barrier is not None and barrier.made is op and warp not in barrier.makers:
        barrier.makers.add(warp)
        return
    actor = batch.shadow.clocks.column(batch.barriers_made[block])
    batch.barriers_made[block] += 1
    empty = np.zeros((3, batch.shadow.clocks.warps), np.int32)
    batch.barriers[block, address] = Barrier(count, op, actor, empty, empty, {warp})
    _touch(context, op, row, address, writes=True)


def _touch(context: Context, op: LaneOp, row: int, address: int, *, writes: bool) -> None:
    """A barrier is eight bytes of memory: who uses it must be ordered with who makes it."""
    batch, warp = context.batch, int(context.warps[row])
    if not batch.options.races:
        return
    place = np.arange(8) + address + warp // batch.program.warps * batch.stride
    reach = Reach(batch, op, context.thread(row, 0), warp, 0, place)
    if writes:
        reach.write(proxy=False)
    else:
        reach.read(proxy=False)


def _arrive_each(batch: Batch, op: LaneOp, barrier: Barrier, warp: int, count: int) -> list[int]:
    """All lanes, one after the other; what each of them gets."""
    words: list[int] = []
    for lane in range(batch.lanes):
        left = barrier.count - barrier.come
        if count > left or (lane and not barrier.come):
            text = (
                f"a warp of {batch.lanes} threads arrives, {count} times each, at an mbarrier that waits for "
                f"{_left(words[0] if words else barrier.word)} arrivals"
            )
            note = Note(f"made here, for {barrier.count} in each phase", barrier.made.span)
            batch.launch.error(BarrierMisuseError(text, op.span, others=(note,), hint=EVERY))
            return [barrier.word] * batch.lanes
        words.append(barrier.word)
        arrive(batch, op, barrier, warp, count)
    return words


def _left(word: int) -> int:
    """How many arrivals a word still waits for."""
    return (word & (1 << PARITY) - 1) + 1


def _behind_copies(batch: Batch, op: LaneOp, barrier: Barrier, warp: int) -> None:
    """Each lane arrives when the copies that it has begun are done."""
    taken: list[tuple[Array, ...]] = []
    left: list[tuple[Array, ...]] = []
    for entry in batch.copies:
        own = entry[0] == warp
        for part, target in ((own, taken), (~own, left)):
            if part.any():
                target.append(tuple(x[part] for x in entry))
    batch.copies = left

    def land() -> None:
        for _, _, _, at, data in taken:
            batch.shared[at], batch.state[at] = data, 1
            if batch.options.races:
                batch.shadow.arrived(np.unique(at // batch.granule), barrier.actor, barrier.phase)
        _arrive_each(batch, op, barrier, warp, 1)

    if batch.options.copies == "earliest":
        land()
    else:
        batch.flights.append(Flight("asynchronous copies", land))


def _check_overtaken(batch: Batch, op: LaneOp, barrier: Barrier, warp: int) -> None:
    """Whoever waits by parity must have seen a phase end before the next one does."""
    overtaken = barrier.overtaken(batch.shadow.clocks.warps)
    if overtaken is None:
        return
    late, wait = overtaken
    text = (
        f"race: phase {barrier.phase - 1} of an mbarrier ends, and warp {late % batch.program.warps} may still wait "
        "for the phase before it, which has the other parity"
    )
    note = Note("the wait, which is not ordered with any arrival at the next phase", wait.span)
    batch.launch.error(RaceError(text, op.span, space="shared", others=(note,)))


def _wait(context: Context, op: LaneOp, barriers: list[Barrier], parity: list[int]) -> Iterator[Wait]:
    """Until each warp's phase is over."""
    batch = context.batch

    def ready() -> bool:
        return all(b.over(parity[row]) for row, b in enumerate(barriers))

    def late() -> tuple[str, list[Note]]:
        b = next(b for row, b in enumerate(barriers) if not b.over(parity[row]))
        notes = [Note(f"made here, for {b.count} arrivals in each phase", b.made.span)]
        if b.arrived is not None:
            notes.append(Note("the last arrival was here", b.arrived.span))
        return f"phase {b.phase} of an mbarrier: {b.come} of {b.count} arrivals have come ({EVERY})", notes

    if not ready():
        yield Wait(ready, "an mbarrier", op.span, late=late)
    for row, barrier in enumerate(barriers):
        warp = int(context.warps[row])
        barrier.waits[warp] = (barrier.phase - 1, int(batch.shadow.clocks.now(np.array([warp]))[0]), op)
        batch.shadow.clocks.acquire(warp, barrier.ended)
        batch.shadow.clocks.phases(warp, barrier.actor, barrier.phase)
