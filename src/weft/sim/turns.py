"""Who runs when: contexts, warps that run in step, are resumed in turn and wait at barriers.

A context is a set of warps at one place of the program. It begins with all warps of all blocks that run together, which
is what makes the simulator fast: control flow is uniform, so one NumPy operation does the work of all of them. Where
warps, or blocks, take different branches, the context splits; its parts are generators that are resumed in turn, stop
where they wait (for a barrier, for an mbarrier, for the parts that they split into) and join again. When all that are
left wait for something that cannot come, it is a deadlock, and everyone's place is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.base import Note
from weft.ir.lane import LaneOp, LaneProgram

from .contexts import AnyContext, Environment, Flight, Launch, Wait
from .errors import DeadlockError, SimulationError, Thread, UninitializedError
from .late import instead_of
from .options import Options
from .races import Shadow
from .report import Report
from .values import Array
from .vendor import meaning_of

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


def _named(context: AnyContext, warps: int) -> str:
    numbers = sorted({int(w) % warps for w in context.warps})
    text = _ranges(numbers).rpartition(" ")[0]
    return f"{text} wait{'s' if len(numbers) == 1 else ''}"


@dataclass
class _Arrival:
    """Who is at a barrier of a block, with the operation that brought them there."""

    warps: list[int] = field(default_factory=list)
    ops: list[LaneOp] = field(default_factory=list)
    phase: int = 0


class Turns:
    """The part of a batch that decides who runs: its contexts, its barriers, and what is under way beside them."""

    shadow: Shadow

    def __init__(self, launch: Launch, numbers: Array) -> None:
        self.launch: Launch = launch
        self.program: LaneProgram = launch.program
        self.adds = meaning_of(launch.program.machine)
        self.options: Options = launch.options
        self.report: Report = launch.report
        self.numbers = numbers
        self.done = np.zeros(len(numbers), np.int64)
        """How many programs each block has executed."""
        self.arrivals: dict[tuple[int, int], _Arrival] = {}
        self.flights: list[Flight] = []
        self.random = np.random.default_rng((self.options.seed, int(numbers[0])))
        self.contexts: list[AnyContext] = []
        self.explaining = False
        """Whether an error was found, and the contexts that are left only go on for what explains it."""

    def context(self, warps: Array, env: Environment) -> AnyContext:
        """A context of these warps of the batch."""
        raise NotImplementedError

    def index_of(self, block: int) -> tuple[int, int, int]:
        """The index in the grid of the program that a block of the batch executes."""
        (_, y, _), x = self.launch.grid, self.launch.blocks_along_x
        number = int(self.numbers[block]) // self.program.blocks
        return number % x + int(self.done[block]) * x, number // x % y, number // (x * y)

    def programs_of(self, blocks: Array) -> Array:
        """How many programs each block of the batch executes."""
        x = self.launch.blocks_along_x
        first = self.numbers[blocks] // self.program.blocks % x
        programs: Array = -(-(self.launch.grid[0] - first) // x)
        return programs

    def program_number(self, blocks: Array) -> Array:
        """The index of the program that each block executes, flattened."""
        all, x = self.launch.grid[0], self.launch.blocks_along_x
        number = self.numbers[blocks] // self.program.blocks
        flat: Array = number // x * all + number % x + self.done[blocks] * x
        return flat

    def sequence(self, count: int) -> Array | None:
        """The order in which lanes act on one address, the last one winning; None is the order of their numbers."""
        if self.options.order == "forward":
            return None
        if self.options.order == "backward":
            return np.arange(count - 1, -1, -1)
        return self.random.permutation(count)

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, start: Callable[[AnyContext], Iterator[Wait]], apart: bool = False) -> None:
        """All contexts to their ends; DeadlockError if some cannot go on.

        Blocks that may wait for each other run `apart`, each in a context of its own: blocks in one context that left a
        loop would wait at its end for those that are still in it. So do blocks with more programs than others.
        """
        warps = np.arange(len(self.numbers) * self.program.warps)
        programs = self.programs_of(warps // self.program.warps)
        alike = [warps[programs == count] for count in np.unique(programs)]
        for part in np.split(warps, len(self.numbers)) if apart else alike:
            env = Environment()
            for value, parameter in zip(self.program.body.arguments, self.program.parameters, strict=True):
                env.values[value] = self.launch.arguments[parameter.name]
            self.add(self.context(part, env), start)
        with np.errstate(all="ignore"):  # numbers overflow, and are divided by zero, as on the machine
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
                moved |= context.waits is None or not context.waits.idle
            except SimulationError as error:
                context.done = True
                if self.explaining or not isinstance(error, UninitializedError) or len(self.contexts) == 1:
                    raise
                self._explain(error)
        self.contexts = [c for c in self.contexts if not c.done]
        return moved

    def _explain(self, read: SimulationError) -> None:
        """Raise the race that a read of unwritten memory is, or else that error."""
        self.explaining = True
        error = instead_of(read, lambda: self._turn() or self._land())
        if error is not read:
            self.report.errors[:] = [error, read]
            raise error from None
        self.report.errors[:] = [read]
        raise read

    def _land(self) -> bool:
        """Let one of the asynchronous operations be done; False if there is none."""
        if not self.flights:
            return False
        order = self.sequence(len(self.flights))
        self.flights.pop(0 if order is None else int(order[0])).land()
        return True

    def add(self, context: AnyContext, start: Callable[[AnyContext], Iterator[Wait]]) -> None:
        """Another context."""
        context.running = start(context)
        self.contexts.append(context)

    def counts_for(self, context: AnyContext) -> None:
        """What is counted from here on is what these warps do."""
        self.report.of_warps(self.numbers[context.warps // self.program.warps] // self.program.blocks)

    def _resume(self, context: AnyContext) -> None:
        assert context.running is not None
        self.counts_for(context)
        context.waits = next(context.running, None)
        if context.waits is None:
            context.done = True

    def _deadlock(self) -> None:
        stuck = [c for c in self.contexts if c.waits is not None and not c.waits.parts]
        stuck = [c for c in stuck if c.waits is not None and c.waits.span is not None] or stuck
        first, hint, cause, notes = stuck[0], "", "", []
        for context in stuck:
            assert context.waits is not None
            event, more = context.waits.late() if context.waits.late else (context.waits.what, [])
            if context is first:
                cause = event
                hint = PHASES if context.waits.late else ""
            notes.append(Note(f"{_named(context, self.program.warps)} here for {event}", context.waits.span))
            notes += [note for note in more if note not in notes]
        ended = [w for w in range(self.program.warps) if self._has_ended(w, int(first.warps[0]) // self.program.warps)]
        if ended:
            notes.append(Note(f"{_ranges(ended)} ended"))
        never, colon, why = cause.partition(": ")
        message = f"deadlock: {never} never {'ends' if colon else 'comes'}{colon}{why}"
        span = first.waits.span if first.waits is not None else None
        self.contexts = []
        self.launch.error(DeadlockError(message, span, thread=first.thread(0), others=notes, hint=hint))

    def _has_ended(self, warp: int, block: int) -> bool:
        number = block * self.program.warps + warp
        return not any((c.warps == number).any() for c in self.contexts)

    # -- barriers -----------------------------------------------------------------------------------------------------

    def block_barrier(self, context: AnyContext, op: LaneOp) -> Iterator[Wait]:
        """All warps of the block, or those that `attrs["warps"]` counts at the barrier `attrs["id"]`."""
        per_block = self.program.warps
        number, expected = int(op.attrs.get("id", 0)), int(op.attrs.get("warps", per_block))
        if self.launch.counting and expected == per_block and context.count == len(self.numbers) * per_block:
            return  # all are there, and nothing is read of what they have done
        blocks, counts = np.unique(context.warps // per_block, return_counts=True)
        if expected == per_block and (counts == per_block).all():
            self.shadow.clocks.block_barrier(blocks)
            return
        targets = []
        for block in blocks.tolist():
            arrival = self.arrivals.setdefault((block, number), _Arrival())
            arrival.warps += [int(w) for w in context.warps if w // per_block == block]
            arrival.ops.append(op)
            targets.append((arrival, arrival.phase + 1))
            if len(arrival.warps) >= expected:
                self._release(block, arrival, expected, "id" in op.attrs)
        if all(a.phase >= phase for a, phase in targets):
            return
        arrived = len(targets[0][0].warps)
        event = f"a barrier that {arrived} of {expected} warps have reached"
        yield Wait(lambda: all(a.phase >= phase for a, phase in targets), event, op.span)

    def _release(self, block: int, arrival: _Arrival, expected: int, named: bool) -> None:
        if len(arrival.warps) > expected or (not named and any(o is not arrival.ops[0] for o in arrival.ops)):
            places = [Note("reached here", o.span) for o in dict.fromkeys(arrival.ops)]
            message = f"a barrier for {expected} warps is reached by warps that are at different barriers"
            self.launch.error(
                DeadlockError(message, arrival.ops[0].span, thread=Thread(self.index_of(block), 0), others=places)
            )
        members = np.array(sorted(w % self.program.warps for w in arrival.warps))
        self.shadow.clocks.block_barrier(np.array([block]), members)
        arrival.warps, arrival.ops = [], []
        arrival.phase += 1
