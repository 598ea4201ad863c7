"""The machine: blocks that run together, their memory, their checkers; and contexts, warps that run in step.

A context is a set of warps at one place of the program. It begins with all warps of all blocks that run together, which
is what makes the simulator fast: control flow is uniform, so one NumPy operation does the work of all of them. Where
warps, or blocks, take different branches, the context splits; its parts are generators that are resumed in turn, stop
where they wait (for a barrier, for an mbarrier, for the parts that they split into) and join again. When all that are
left wait for something that cannot come, it is a deadlock, and everyone's place is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.base import Note, Span
from weft.ir.lane import LaneOp, LaneProgram, Value, Variable

from .debugger import Names
from .errors import DeadlockError, FenceError, MisalignedError, OutOfBoundsError, RaceError, SimulationError, Thread
from .errors import UninitializedError as Uninitialized
from .late import first_of, instead_of
from .memory import GlobalMemory, count_sectors, count_wavefronts
from .options import Options
from .races import Shadow
from .reach import note_of_flight, note_of_read, note_of_write
from .remembered import Remembered
from .report import Report
from .values import Array, Fragment

__all__ = ["Access", "Batch", "Context", "Environment", "Launch", "Wait"]


@dataclass
class Launch:
    """What all blocks of a launch have in common."""

    program: LaneProgram
    grid: tuple[int, int, int]
    memory: GlobalMemory
    arguments: dict[str, Fragment]
    options: Options
    report: Report
    names: Names | None = None
    """The kernel's variables, where someone watches."""
    counting: bool = False
    """Whether it is only counted: memory is not touched, and what is read is not known."""
    steps: int = 0

    def error(self, error: SimulationError) -> None:
        """Raise it, or keep it: one for each kind and place."""
        if self.options.order == "random":
            error.notes = (*error.notes, Note(f"found where {self.options.describe()}"))
        if self.options.raise_first:
            self.report.errors.append(error)
            raise error
        for known in self.report.errors:
            if type(known) is type(error) and known.span == error.span:
                known.count += 1
                return
        self.report.errors[:] = first_of([*self.report.errors, error])


PHASES = (
    "in each phase an mbarrier needs all its arrivals and exactly the bytes announced; nothing under way brings them"
)


def _ranges(warps: Sequence[int]) -> str:
    """Warps in words: those that follow each other as a range."""
    parts: list[list[int]] = []
    for warp in sorted(warps):
        if parts and parts[-1][-1] == warp - 1:
            parts[-1].append(warp)
        else:
            parts.append([warp])
    text = ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]} to {p[-1]}" for p in parts)
    return f"warps {text} have" if len(warps) > 1 else f"warp {text} has"


def _named(context: Context, warps: int) -> str:
    who = sorted({int(w) % warps for w in context.warps})
    text = _ranges(who).rpartition(" ")[0]
    return f"{text} wait{'s' if len(who) == 1 else ''}"


class Environment:
    """The values of a context; those of the context that it split from are found through `outer`."""

    __slots__ = ("names", "outer", "rows", "values")

    def __init__(self, outer: Environment | None = None, rows: Array | None = None) -> None:
        self.values: dict[Value, Fragment] = {}
        self.outer, self.rows = outer, rows
        self.names: dict[str, Variable] = dict(outer.names) if outer is not None else {}
        """The kernel's variables, where someone watches: the value that each has now."""

    def __getitem__(self, value: Value) -> Fragment:
        found = self.values.get(value)
        if found is None:
            assert self.outer is not None and self.rows is not None, f"{value} has no value"
            found = self.values[value] = self.outer[value].rows(self.rows)
        return found


@dataclass
class Wait:
    """Why a context does not go on: `ready` says whether it may again, `what` is for people."""

    ready: Callable[[], bool]
    what: str
    span: Span | None
    parts: bool = False
    """Whether it waits for its own parts, which is never the cause of a deadlock."""
    late: Callable[[], tuple[str, list[Note]]] | None = None
    """`what` as it is when nobody can go on, and the places that have to do with it."""
    idle: bool = False
    """Whether it only asks again and again: that it can do so is no progress."""


@dataclass
class Flight:
    """An asynchronous operation that is done when nothing else goes on, or before."""

    what: str
    land: Callable[[], None]
    owner: object = None


@dataclass
class Access:
    """One access of memory: arrays [warp, lane, register] of addresses and of who takes part."""

    op: LaneOp
    space: str
    address: Array
    active: Array
    width: int
    counted: bool = True
    """Whether address and mask are known."""
    proxy: bool = False
    """Whether the asynchronous proxy does it."""
    known: bool = True
    """Whether what is written is known, or what was read: only the counter reads what it does not know."""
    home: Array | None = None
    """In the space `cluster` the block of the batch whose memory each address is in; `address` counts within it."""


@dataclass
class Context:
    """Warps that run in step. `warps` numbers them over all blocks of the batch."""

    batch: Batch
    warps: Array
    env: Environment
    done: bool = False
    waits: Wait | None = None
    running: Iterator[Wait] | None = None
    place: tuple[str, int] | None = None
    """The line that it is at, where someone watches."""
    first: int = 0
    """The first warp in the block of the partition that they belong to."""

    @property
    def count(self) -> int:
        """How many warps."""
        return len(self.warps)

    def thread(self, row: int, lane: int | None = None) -> Thread:
        """Who the lane of the row-th warp is."""
        block, warp = divmod(int(self.warps[row]), self.batch.program.warps)
        return Thread(self.batch.index_of(block), warp, lane)

    def narrow(self, rows: Array) -> None:
        """Go on with some of the warps; the others have returned."""
        self.env = Environment(self.env, rows)
        self.warps = self.warps[rows]


@dataclass
class _Arrival:
    """Who is at a barrier of a block, with the operation that brought them there."""

    warps: list[int] = field(default_factory=list)
    ops: list[LaneOp] = field(default_factory=list)
    turn: int = 0


class Batch:
    """Blocks that run together: `numbers` are their indices in the grid, flattened; a cluster's follow each other."""

    def __init__(self, launch: Launch, numbers: Array, granule: int) -> None:
        self.launch, self.program, self.numbers = launch, launch.program, numbers
        self.options, self.report = launch.options, launch.report
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
        self.sites: list[LaneOp] = []
        self._site_of: dict[int, int] = {}
        self.arrivals: dict[tuple[int, int], _Arrival] = {}
        self.mbarriers: dict[tuple[int, int], Any] = {}
        """By block and address."""
        self.former: dict[tuple[int, int], LaneOp] = {}
        """What has made an end of an mbarrier."""
        self.barriers_made = [0] * (blocks // cluster)
        """mbarriers, by cluster."""
        self.flights: list[Flight] = []
        self.bulk_stores: list[Any] = []
        self.bulk_groups = np.zeros(blocks * warps, np.int64)
        self.products: list[Any] = []
        self.product_groups = np.zeros(blocks * warps, np.int64)
        self.clusters: dict[int, Any] = {}
        """The barrier of each cluster."""
        self.copies: list[Any] = []
        self.groups = np.zeros(blocks * warps, np.int64)
        """Groups of asynchronous copies that each warp has ended."""
        self.random = np.random.default_rng((self.options.seed, int(numbers[0])))
        self.contexts: list[Context] = []
        self.explaining = False
        """Whether an error was found, and the contexts that are left only go on for what explains it."""

    # -- who and where ------------------------------------------------------------------------------------------------

    def index_of(self, block: int) -> tuple[int, int, int]:
        """The index in the grid of a block of the batch."""
        x, y, _ = self.launch.grid
        number = int(self.numbers[block]) // self.program.blocks
        return number % x, number // x % y, number // (x * y)

    def site(self, op: LaneOp) -> int:
        """A number for an operation."""
        found = self._site_of.get(id(op))
        if found is None:
            found = self._site_of[id(op)] = len(self.sites)
            self.sites.append(op)
        return found

    def sequence(self, count: int) -> Array | None:
        """The order in which lanes act on one address, the last one winning; None is the order of their numbers."""
        if self.options.order == "forward":
            return None
        if self.options.order == "backward":
            return np.arange(count - 1, -1, -1)
        return self.random.permutation(count)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, start: Callable[[Context], Iterator[Wait]], apart: bool = False) -> None:
        """All contexts to their ends; DeadlockError if some cannot go on.

        Blocks that may wait for each other run `apart`, each in a context of its own: blocks in one context that left a
        loop would wait at its end for those that are still in it.
        """
        warps = np.arange(len(self.numbers) * self.program.warps)
        for part in np.split(warps, len(self.numbers)) if apart else [warps]:
            env = Environment()
            for value, parameter in zip(self.program.body.arguments, self.program.parameters, strict=True):
                env.values[value] = self.launch.arguments[parameter.name]
            self.add(Context(self, part, env), start)
        while self.contexts:
            if not self._turn() and not self._land() and not any(c.waits and c.waits.idle for c in self.contexts):
                self._deadlock()

    def _turn(self) -> bool:
        """Let each context that can go on do so, up to where it waits; whether one did more than to ask again."""
        moved = False
        order = self.sequence(len(self.contexts))
        for context in list(self.contexts) if order is None else [self.contexts[i] for i in order]:
            if context.done or (context.waits is not None and not context.waits.ready()):
                continue
            moved |= context.waits is None or not context.waits.idle
            try:
                self._resume(context)
            except SimulationError as error:
                context.done = True
                if self.explaining or not isinstance(error, Uninitialized) or len(self.contexts) == 1:
                    raise
                self._explain(error)
        self.contexts = [c for c in self.contexts if not c.done]
        return moved

    def _explain(self, read: SimulationError) -> None:
        """Raise the race that a read of unwritten memory is, or else that error."""
        self.explaining = True
        found = instead_of(read, lambda: self._turn() or self._land())
        if found is not read:
            self.report.errors[:] = [found, read]
            raise found from None
        self.report.errors[:] = [read]
        raise read

    def _land(self) -> bool:
        """Let one of the asynchronous operations be done; False if there is none."""
        if not self.flights:
            return False
        order = self.sequence(len(self.flights))
        self.flights.pop(0 if order is None else int(order[0])).land()
        return True

    def add(self, context: Context, start: Callable[[Context], Iterator[Wait]]) -> None:
        """Another context."""
        context.running = start(context)
        self.contexts.append(context)

    def _resume(self, context: Context) -> None:
        assert context.running is not None
        context.waits = next(context.running, None)
        if context.waits is None:
            context.done = True

    def _deadlock(self) -> None:
        stuck = [c for c in self.contexts if c.waits is not None and not c.waits.parts]
        stuck = [c for c in stuck if c.waits is not None and c.waits.span is not None] or stuck
        first, hint, cause, notes = stuck[0], "", "", []
        for context in stuck:
            assert context.waits is not None
            what, more = context.waits.late() if context.waits.late else (context.waits.what, [])
            if context is first:
                cause = what
                hint = PHASES if context.waits.late else ""
            notes.append(Note(f"{_named(context, self.program.warps)} here for {what}", context.waits.span))
            notes += [note for note in more if note not in notes]
        ended = [w for w in range(self.program.warps) if self._has_ended(w, int(first.warps[0]) // self.program.warps)]
        if ended:
            notes.append(Note(f"{_ranges(ended)} ended"))
        never, colon, why = cause.partition(": ")
        found = f"deadlock: {never} never {'ends' if colon else 'comes'}{colon}{why}"
        span = first.waits.span if first.waits is not None else None
        self.contexts = []
        self.launch.error(DeadlockError(found, span, thread=first.thread(0), others=notes, hint=hint))

    def _has_ended(self, warp: int, block: int) -> bool:
        number = block * self.program.warps + warp
        return not any((c.warps == number).any() for c in self.contexts)

    # -- barriers -----------------------------------------------------------------------------------------------------

    def block_barrier(self, context: Context, op: LaneOp) -> Iterator[Wait]:
        """All warps of the block, or those that `attrs["warps"]` counts at the barrier `attrs["id"]`."""
        per_block = self.program.warps
        number, expected = int(op.attrs.get("id", 0)), int(op.attrs.get("warps", per_block))
        blocks, counts = np.unique(context.warps // per_block, return_counts=True)
        if expected == per_block and (counts == per_block).all():
            self.shadow.clocks.block_barrier(blocks)
            return
        targets = []
        for block in blocks.tolist():
            arrival = self.arrivals.setdefault((block, number), _Arrival())
            arrival.warps += [int(w) for w in context.warps if w // per_block == block]
            arrival.ops.append(op)
            targets.append((arrival, arrival.turn + 1))
            if len(arrival.warps) >= expected:
                self._release(block, arrival, expected, "id" in op.attrs)
        if all(a.turn >= turn for a, turn in targets):
            return
        have = len(targets[0][0].warps)
        what = f"a barrier that {have} of {expected} warps have reached"
        yield Wait(lambda: all(a.turn >= turn for a, turn in targets), what, op.span)

    def _release(self, block: int, arrival: _Arrival, expected: int, named: bool) -> None:
        if len(arrival.warps) > expected or (not named and any(o is not arrival.ops[0] for o in arrival.ops)):
            places = [Note("reached here", o.span) for o in dict.fromkeys(arrival.ops)]
            found = f"a barrier for {expected} warps is reached by warps that are at different barriers"
            self.launch.error(
                DeadlockError(found, arrival.ops[0].span, thread=Thread(self.index_of(block), 0), others=places)
            )
        members = np.array(sorted(w % self.program.warps for w in arrival.warps))
        self.shadow.clocks.block_barrier(np.array([block]), members)
        arrival.warps, arrival.ops = [], []
        arrival.turn += 1

    # -- memory -------------------------------------------------------------------------------------------------------

    def base(self, context: Context) -> Array:
        """Where each warp's block has its shared memory, [warp, 1, 1]."""
        found: Array = (context.warps // self.program.warps * self.stride)[:, None, None]
        return found

    def flat(self, context: Context, access: Access) -> Array:
        """Addresses in the shared memory of all blocks."""
        home = self.base(context) if access.home is None else access.home * self.stride
        found: Array = access.address + home
        return found

    def block_of_rank(self, block: Array, rank: Array) -> Array:
        """The blocks of the batch that have these ranks in the clusters of others."""
        away = rank - self.numbers[block] % self.program.blocks
        found: Array = block + (away if self.numbers[0] <= self.numbers[-1] else -away)
        return found

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
                self._report(OutOfBoundsError, context, access, wrong, self._outside(access, store))
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
        self.launch.error(error)

    def count(self, context: Context, access: Access, store: bool) -> None:
        """Bytes, sectors, wavefronts."""
        verb = "store" if store else "load"
        active, address = (
            np.moveaxis(x, 1, 2).reshape(-1, x.shape[1]) for x in (access.active, access.address)
        )  # [access, lane]
        counts = {f"{access.space}_{verb}_bytes": int(active.sum()) * access.width}
        if access.space == "global":
            counts[f"global_{verb}_sectors"] = count_sectors(address, active)
        elif access.space == "shared":
            passes, ideal = count_wavefronts(address, active, access.width, not store)
            counts[f"shared_{verb}_wavefronts"] = passes
            counts["shared_ideal"] = ideal
        self.report.add(access.op.span, **counts)

    def load(self, context: Context, access: Access) -> tuple[Array, Array | None]:
        """The bytes, uint8 [warp, lane, register, width], zeros where not active; and which are undefined."""
        active = self.checked(context, access, False)
        if self.remembered is not None and access.counted and access.space == "shared":
            found = self.remembered.read(access.address + self.base(context), access.active, access.width)
            if found is not None:
                access.known = True
                return found, None
        data = np.zeros((*access.address.shape, access.width), np.uint8)
        if not active.any():
            return data, None
        if access.space == "global":
            data[active] = self.launch.memory.read(access.address[active], access.width)
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

    def remember(self, context: Context, access: Access, data: Array | None) -> None:
        """Counting: the shared memory that an access writes holds these bytes; None are not known."""
        assert self.remembered is not None
        if not access.counted or access.space == "cluster":
            self.remembered.forget()
            return
        if data is None:
            data = np.zeros((*access.address.shape, access.width), np.uint8)
            access.known = False
        self.remembered.write(access.address + self.base(context), access.active, data, access.known)

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
        found = self.shadow.after_write(granule, warp, lane)
        if found.any():
            self._race(context, access, active, index[found], granule[found], "reads")
        if access.proxy and not found.any():
            self._check_fence(context, access, active, granule, index)
        self.shadow.record_read(granule, warp, lane, self.site(access.op))

    def _check_fence(self, context: Context, access: Access, active: Array, granule: Array, index: Array) -> None:
        found = self.shadow.unfenced(granule, context.warps[np.nonzero(active)[0]][index])
        if found.any():
            where = np.zeros(active.shape, np.bool_)
            where[tuple(x[index[found]] for x in np.nonzero(active))] = True
            first = int(granule[found][0])
            warp, lane = divmod(int(self.shadow.writer[first]), self.lanes)
            who = self.shadow.name_of(warp, lane)
            note = Note(f"written by {who}, with no fence since", self.sites[int(self.shadow.write_site[first])].span)
            text = "the asynchronous proxy reads byte {} of shared memory, and may not see what was written"
            self._report(FenceError, context, access, where, text.format, (note,))

    def _check_write(self, context: Context, access: Access, active: Array, flat: Array, pending: bool) -> None:
        granule, warp, lane, index = self.granules(context, access, active, flat)
        thread = context.thread(int(np.searchsorted(context.warps, warp[0])), int(lane[0]))
        if self.check_flights(granule, access.op, thread):
            self.shadow.record_write(granule, warp, lane, self.site(access.op), pending)
            return
        found = self.shadow.after_write(granule, warp, lane)
        if found.any():
            self._race(context, access, active, index[found], granule[found], "writes")
        readers = self.shadow.after_read(granule, warp, lane)
        if (readers >= 0).any():
            chosen = readers >= 0
            self._race(context, access, active, index[chosen], granule[chosen], "writes", readers[chosen])
        self.shadow.record_write(granule, warp, lane, self.site(access.op), pending)

    def check_flights(self, granule: Array, op: LaneOp, thread: Thread) -> bool:
        """Report a write to what an asynchronous reader still reads; whether it is one."""
        found = granule[self.shadow.flights[granule] > 0]
        if not len(found):
            return False
        address = int(found[0]) * self.granule % self.stride
        text = f"race: writes byte {address} of shared memory while it is read asynchronously"
        note, hint = note_of_flight(self, int(found[0]))
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
