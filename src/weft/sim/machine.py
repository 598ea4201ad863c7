"""The machine: blocks that run together, their memory, and what checks each access; who runs when is in `turns`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp

from . import contexts
from .between import HINT
from .contexts import Access, Environment, Flight, Launch, Wait
from .errors import (
    FenceError,
    MisalignedError,
    OutOfBoundsError,
    RaceError,
    SimulationError,
    Thread,
    UninitializedError as Uninitialized,
)
from .notes import note_of_flight, note_of_read, note_of_write
from .patterns import FOR_ESTIMATES, counts_of
from .races import Shadow
from .remembered import Remembered
from .turns import Turns
from .values import Array

__all__ = ["Access", "Batch", "Context", "Environment", "Flight", "Launch", "Wait"]

FOREIGN = (
    "`with weft.sim.options(arrays=[...])` names the arrays to which addresses in memory lead; "
    "if this address was computed from an argument, pass a mask that is false where the index is outside of the array"
)


class Batch(Turns):
    """Blocks that run together: `numbers` are their indices in the grid, flattened; a cluster's follow each other."""

    def __init__(self, launch: Launch, numbers: Array, granule: int) -> None:
        super().__init__(launch, numbers)
        self.lanes = self.program.lanes
        blocks, warps = len(numbers), self.program.warps
        self.stride = (self.program.shared_bytes + 127) // 128 * 128
        size = 0 if launch.counting else blocks * self.stride
        self.remembered = Remembered(blocks * self.stride) if launch.counting else None
        self.shared = np.zeros(size, np.uint8)
        self.state = np.zeros(size, np.uint8)
        """Of each byte: 0 never written, 1 written, 2 written with a value that is undefined."""
        self.granule = granule
        cluster = self.program.blocks
        self.shadow = Shadow(size // granule if self.options.races else 0, blocks, warps, self.lanes, cluster)
        self.barriers: dict[tuple[int, int], Any] = {}
        """By block and address."""
        self.former: dict[tuple[int, int], LaneOp] = {}
        """What has made an end of an mbarrier."""
        self.barriers_made = [0] * (blocks // cluster)
        """mbarriers, by cluster."""
        self.bulk_stores: list[Any] = []
        self.bulk_groups = np.zeros(blocks * warps, np.int64)
        self.products: list[Any] = []
        self.product_groups = np.zeros(blocks * warps, np.int64)
        self.slopes: tuple[Any, ...] = ()
        """Counting: how far values move from a period to the next, of the loops that are looked at (slopes.py)."""
        self.turns: dict[int, Any] = {}
        """Of each warp that takes turns with another group: the step that it is at."""
        self.clusters: dict[Any, Any] = {}
        """The barrier of each cluster."""
        self.copies: list[Any] = []
        self.groups = np.zeros(blocks * warps, np.int64)
        """Groups of asynchronous copies that each warp has ended."""

    # -- who and where ------------------------------------------------------------------------------------------------

    def context(self, warps: Array, env: Environment) -> Context:
        return contexts.Context(self, warps, env)

    def next_program(self, blocks: Array) -> None:
        """Blocks have executed a program; what it left in shared memory is not for the next one to read."""
        self.done[blocks] += 1
        if self.stride and not self.launch.counting:
            self.state.reshape(-1, self.stride)[blocks] = 0

    # -- memory -------------------------------------------------------------------------------------------------------

    def base(self, context: Context) -> Array:
        """Where each warp's block has its shared memory, [warp, 1, 1]."""
        base: Array = (context.warps // self.program.warps * self.stride)[:, None, None]
        return base

    def flat(self, context: Context, access: Access) -> Array:
        """Addresses in the shared memory of all blocks."""
        home = self.base(context) if access.home is None else access.home * self.stride
        flat: Array = access.address + home
        return flat

    def block_of_rank(self, block: Array, rank: Array) -> Array:
        """The blocks of the batch that have these ranks in the clusters of others."""
        away = rank - self.numbers[block] % self.program.blocks
        target: Array = block + (away if self.numbers[0] <= self.numbers[-1] else -away)
        return target

    def checked(self, context: Context, access: Access, store: bool) -> Array:
        """Who may go through with an access: aligned, inside of memory; the others are reported."""
        if access.counted:
            self.count(context, access, store)
        if self.launch.counting:
            return np.zeros(access.active.shape, np.bool_)
        active = access.active
        wrong = active & (access.address % access.width != 0)
        if wrong.any():
            self._report(MisalignedError, context, access, wrong, self._misaligned(access))
            active = active & ~wrong
        shared = access.space != "global"
        if shared:
            size = self.program.shared_bytes
            wrong = active & ((access.address < 0) | (access.address + access.width > size))
        else:
            wrong = active & self.launch.memory.outside(access.address, access.width)
        if wrong.any():
            if self.options.bounds:
                is_foreign = access.space == "global" and self.launch.memory.is_foreign(int(access.address[wrong][0]))
                hint = FOREIGN if is_foreign else ""
                self._report(OutOfBoundsError, context, access, wrong, self._outside(access, store), hint=hint)
            active = active & ~wrong
        return active

    @staticmethod
    def _misaligned(access: Access) -> Callable[[int], str]:
        return lambda at: f"{access.width} bytes at address {at:#x}, which is no multiple of {access.width}"

    def _outside(self, access: Access, store: bool) -> Callable[[int], str]:
        verb = "writes" if store else "reads"
        if access.space != "global":
            return lambda at: (
                f"{verb} {access.width} bytes at byte {at} of shared memory, which has {self.program.shared_bytes}"
            )
        return lambda at: (
            f"{verb} {access.width} bytes outside of every array, at {at:#x}: {self.launch.memory.describe(at)}"
        )

    def _report(
        self,
        kind: type[SimulationError],
        context: Context,
        access: Access,
        where: Array,
        text: Callable[[int], str],
        others: tuple[Note, ...] = (),
        hint: str = "",
    ) -> None:
        row, lane, register = (int(x[0]) for x in np.nonzero(where))
        address = int(access.address[row, lane, register])
        error = kind(
            text(address),
            access.op.span,
            thread=context.thread(row, lane),
            address=address,
            space=access.space,
            others=others,
            hint=hint,
        )
        error.count = int(where.sum())
        if isinstance(error, OutOfBoundsError) and access.space == "global":
            error.argument = self.launch.memory.nearest(address)
        self.launch.error(error)

    def count(self, context: Context, access: Access, store: bool) -> None:
        """Bytes, sectors, wavefronts."""
        verb, times = "store" if store else "load", 1
        if self.launch.patterns is not None:
            counts, times = self.launch.patterns.counts(access, verb, self.program)
        else:
            counts = counts_of(access.space, verb, access.address, access.active, access.width, self.program.machine)
        if not self.launch.steady:
            counts = {name: each for name, each in counts.items() if not name.endswith(FOR_ESTIMATES)}
        if times > 1 and context.count == len(self.numbers) * self.program.warps:  # all blocks count the same
            self.report.add(access.op.span, **{name: int(each.sum()) * times for name, each in counts.items()})
        else:
            self.report.add_each(access.op.span, {name: np.tile(each, times) for name, each in counts.items()})

    def load(self, context: Context, access: Access) -> tuple[Array, Array | None]:
        """The bytes, uint8 [warp, lane, register, width], zeros where not active; and which are undefined."""
        active = self.checked(context, access, False)
        if self.remembered is not None and access.counted and access.space == "shared":
            remembered = self.remembered.read(access.address + self.base(context), access.active, access.width)
            if remembered is not None:
                access.known = True
                return remembered, None
        data = np.zeros((*access.address.shape, access.width), np.uint8)
        if not active.any():
            return data, None
        if access.space == "global":
            data[active] = self.launch.memory.read(access.address[active], access.width)
            if self.launch.between is not None:
                programs = self.launch.between.programs(context, active)
                racing, note = self.launch.between.read(access, access.address[active], programs)
                self._between(context, access, active, racing, note, "reads")
            return data, None
        flat = self.flat(context, access)
        if self.options.races:
            self._check_read(context, access, active, flat)
        at = flat[active][:, None] + np.arange(access.width)
        data[active] = self.shared[at]
        if not self.options.uninitialized:
            return data, None
        state = np.ones(data.shape, np.uint8)
        state[active] = self.state[at]
        never = (state == 0).any(axis=3)
        if never.any():
            self._report(Uninitialized, context, access, never, self._never)
        return data, state != 1 if (state != 1).any() else None

    @staticmethod
    def _never(at: int) -> str:
        return f"reads byte {at} of shared memory, which was never written"

    def store(self, context: Context, access: Access, data: Array, undefined: Array | None = None) -> None:
        """The bytes uint8 [warp, lane, register, width] to memory."""
        active = self.checked(context, access, True)
        if self.remembered is not None and access.space != "global":
            self.remember(context, access, data)
        if not active.any():
            return
        order = self.sequence(int(active.sum()))
        chosen = slice(None) if order is None else order
        if access.space == "global":
            if self.launch.between is not None:
                programs = self.launch.between.programs(context, active)
                racing, note = self.launch.between.write(access, access.address[active], programs, data[active])
                self._between(context, access, active, racing, note, "writes")
            self.launch.memory.write(access.address[active][chosen], data[active][chosen])
            return
        flat = self.flat(context, access)
        at = flat[active][:, None] + np.arange(access.width)
        if self.options.races:
            self._check_write(context, access, active, flat, False)
        self.shared[at[chosen]] = data[active][chosen]
        state = np.ones(at.shape, np.uint8) if undefined is None else np.where(undefined[active], 2, 1).astype(np.uint8)
        self.state[at[chosen]] = state[chosen]
        if self.options.races:
            self._check_equal(context, access, active, at, data)

    def _between(
        self, context: Context, access: Access, active: Array, racing: Array, note: Note | None, verb: str
    ) -> None:
        """Report accesses that race with those of another program."""
        if racing.any():
            where = np.zeros(active.shape, np.bool_)
            where[active] = racing
            text = f"race between programs: {verb} {access.width} bytes"
            notes = () if note is None else (note,)
            self._report(
                RaceError,
                context,
                access,
                where,
                lambda a: f"{text}, {self.launch.memory.describe(a)}",
                notes,
                HINT,
            )

    def remember(self, context: Context, access: Access, data: Array | None) -> None:
        """Counting: the shared memory that an access writes holds these bytes; None are not known."""
        assert self.remembered is not None
        if not access.counted or access.space == "cluster":
            self.remembered.forget()
            return
        flat = access.address + self.base(context)
        self.remembered.write(flat, access.active, access.width, data if access.known else None)

    # -- races --------------------------------------------------------------------------------------------------------

    def granules(
        self, context: Context, access: Access, active: Array, flat: Array
    ) -> tuple[Array, Array, Array, Array]:
        """(granule, warp, lane, index of the access among those active) of each granule that is touched."""
        each = max(1, access.width // self.granule)
        granule = (flat[active][:, None] // self.granule + np.arange(each)).reshape(-1)
        row, lane, _ = np.nonzero(active)
        index = np.repeat(np.arange(len(row)), each)
        return granule, context.warps[row][index], lane[index], index

    def _check_read(self, context: Context, access: Access, active: Array, flat: Array) -> None:
        granule, warp, lane, index = self.granules(context, access, active, flat)
        racing = self.shadow.after_write(granule, warp, lane)
        if racing.any():
            self._race(context, access, active, index[racing], granule[racing], "reads")
        if access.proxy and not racing.any():
            self._check_fence(context, access, active, granule, index)
        self.shadow.record_read(granule, warp, lane, self.shadow.site(access.op))

    def _check_fence(self, context: Context, access: Access, active: Array, granule: Array, index: Array) -> None:
        unfenced = self.shadow.unfenced(granule, context.warps[np.nonzero(active)[0]][index])
        if unfenced.any():
            where = np.zeros(active.shape, np.bool_)
            where[tuple(x[index[unfenced]] for x in np.nonzero(active))] = True
            first = int(granule[unfenced][0])
            warp, lane = divmod(int(self.shadow.writer[first]), self.lanes)
            actor = self.shadow.name_of(warp, lane)
            span = self.shadow.sites[int(self.shadow.write_site[first])].span
            note = Note(f"written by {actor}, with no fence since", span)
            text = "the asynchronous proxy reads byte {} of shared memory, and may not see what was written"
            self._report(FenceError, context, access, where, text.format, (note,))

    def _check_write(self, context: Context, access: Access, active: Array, flat: Array, pending: bool) -> None:
        granule, warp, lane, index = self.granules(context, access, active, flat)
        thread = context.thread(int(np.searchsorted(context.warps, warp[0])), int(lane[0]))
        if self.check_flights(granule, access.op, thread):
            self.shadow.record_write(granule, warp, lane, self.shadow.site(access.op), pending)
            return
        racing = self.shadow.after_write(granule, warp, lane)
        if racing.any():
            self._race(context, access, active, index[racing], granule[racing], "writes")
        readers = self.shadow.after_read(granule, warp, lane)
        if (readers >= 0).any():
            chosen = readers >= 0
            self._race(context, access, active, index[chosen], granule[chosen], "writes", readers[chosen])
        self.shadow.record_write(granule, warp, lane, self.shadow.site(access.op), pending)

    def check_flights(self, granule: Array, op: LaneOp, thread: Thread) -> bool:
        """Report a write to what an asynchronous reader still reads; whether it is one."""
        in_flight = granule[self.shadow.flights[granule] > 0]
        if not len(in_flight):
            return False
        address = int(in_flight[0]) * self.granule % self.stride
        text = f"race: writes byte {address} of shared memory while it is read asynchronously"
        note, hint = note_of_flight(self, int(in_flight[0]))
        error = RaceError(text, op.span, thread=thread, address=address, space="shared", others=(note,), hint=hint)
        self.launch.error(error)
        return True

    def atomic(self, context: Context, access: Access, active: Array, flat: Array) -> None:
        """Check an atomic access of shared memory: it must be ordered with all others that are not atomic."""
        at = flat[active][:, None] + np.arange(access.width)
        if self.options.uninitialized:
            never = np.zeros(active.shape, np.bool_)
            never[active] = (self.state[at] == 0).any(axis=1)
            if never.any():
                self._report(Uninitialized, context, access, never, self._never)
        if self.options.races:
            granule = self.granules(context, access, active, flat)[0]
            self.shadow.writer[granule[self.shadow.atomic[granule]]] = -1  # forgotten: it is about to be replaced
            self._check_write(context, access, active, flat, False)
            self.shadow.atomic[granule] = True

    def _check_equal(self, context: Context, access: Access, active: Array, at: Array, data: Array) -> None:
        """Lanes that write one address in one operation must write the same."""
        lost = (self.shared[at] != data[active]).any(axis=1)
        if lost.any():
            where = np.zeros(active.shape, np.bool_)
            where[active] = lost
            self._report(
                RaceError,
                context,
                access,
                where,
                lambda a: f"two lanes write different values to byte {a} of shared memory",
            )

    def _race(
        self,
        context: Context,
        access: Access,
        active: Array,
        index: Array,
        granule: Array,
        verb: str,
        readers: Array | None = None,
    ) -> None:
        where = np.zeros(active.shape, np.bool_)
        rows = np.nonzero(active)
        where[tuple(x[index] for x in rows)] = True
        first = int(granule[np.argmin(index)])
        at = int(np.argmin(index))
        if readers is not None:
            note, hint = note_of_read(self, first, int(readers[at])), ""
        else:
            note, hint = note_of_write(self, first)
        self._report(
            RaceError, context, access, where, lambda a: f"race: {verb} byte {a} of shared memory", (note,), hint
        )

    def issue_copy(self, context: Context, access: Access, active: Array, data: Array, undefined: Array | None) -> None:
        """Bytes on their way to shared memory: there when their group was waited for, or at once."""
        flat = access.address + self.base(context)
        if self.options.races:
            self._check_write(context, access, active, flat, True)
        at = flat[active][:, None] + np.arange(access.width)
        row, lane, _ = np.nonzero(active)
        warp = context.warps[row]
        if self.options.copies == "earliest":
            self.shared[at], self.state[at] = data[active], 1
        self.copies.append((warp, lane, self.groups[warp], at, data[active]))

    def await_copies(self, context: Context, pending: int) -> None:
        """All groups of these warps but the last `pending` land."""
        left = []
        limit = np.full(len(self.groups), -1, np.int64)
        limit[context.warps] = self.groups[context.warps] - pending
        for warp, lane, group, at, data in self.copies:
            done = group < limit[warp]
            if done.any():
                if self.options.copies == "latest":
                    self.shared[at[done]], self.state[at[done]] = data[done], 1
                if self.options.races:
                    self._landed(warp[done], lane[done], at[done])
            if not done.all():
                keep = ~done
                left.append((warp[keep], lane[keep], group[keep], at[keep], data[keep]))
        self.copies = left

    def _landed(self, warp: Array, lane: Array, at: Array) -> None:
        granule = at[:, :: self.granule] // self.granule
        each = granule.shape[1]
        self.shadow.landed(granule.reshape(-1), np.repeat(warp, each), np.repeat(lane, each))


Context: TypeAlias = contexts.Context[Batch]
