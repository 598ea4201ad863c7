"""Accesses of shared memory that meet with no barrier between them.

The program is walked through with what is pending: the accesses since the last barrier. Loops are walked through again
and again, with what is known of the values they carry, until nothing new is pending; so the slots of a pipeline's
buffers, which go round, are told apart. What a branch may or may not do is pending afterwards either way.

An asynchronous copy is pending until it was waited for and a barrier came after that. Copies into shared memory that
complete on an mbarrier are ordered by whoever waits for it; what wgmma reads is pending until a barrier after its wait,
which may leave the last groups of products under way.

In a cluster, what other blocks may touch ("exposed") is pending for them until a barrier of the cluster. Nobody ends
while an access of another block's memory is pending: that block might be gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, repeat
from typing import Any

import numpy as np

from weft.ir.lane import Block, LaneOp, LaneProgram, Value
from weft.targets.table import effects_of

from .lane_numbers import MODULUS, Array, LaneNumbers, origins
from .touches import Footprint, Footprints, Touch, is_block_barrier, is_cluster_barrier, touches_of, waits_of

__all__ = ["ORDERING", "Hazards", "Pending"]

ITERATIONS = 3 * MODULUS
"""Iterations of a loop after which the values that it carries are taken to be unknown."""


GROUPS = 4
"""To which groups of asynchronous accesses are counted: few loops leave more under way."""


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """An access that no barrier of the block has come after. With `warp` one of its warp has.

    Equal ones are one object (`_Known`), as sets of them are made and compared at each step of a walk.
    """

    footprint: Footprint
    how: str
    op: LaneOp
    warp: bool = False
    flight: str = ""
    """The kind of asynchronous access that it is, while nobody has waited for it: a barrier does not order it."""
    groups: int = 0
    """Groups of its kind that have been closed since, its own among them, as far as they are counted."""
    release: bool = False
    """Whether it is an arrival: others need not be done for another one."""
    far: bool = False
    """Whether it is in the memory of another block of the cluster, perhaps."""
    block: bool = False
    """Whether a barrier of the block has come after it: it is pending for other blocks only."""
    arrived: bool = False
    """Whether the block has arrived at a barrier of the cluster since, which it has not waited for."""


class _Known:
    """All accesses that were ever pending, and what became of what was pending at operations: the iterations of loops
    and one walk after another meet the same."""

    def __init__(self) -> None:
        self.after: dict[tuple[object, ...], State] = {}
        """What is pending after an operation, by it, what was before, and the footprints of its accesses."""
        self._all: dict[tuple[object, ...], Pending] = {}
        self._changed: dict[tuple[Pending, str, object], Pending] = {}

    def of(self, *fields: Any) -> Pending:
        """The access with these fields, in the order of the class."""
        pending = self._all.get(fields)
        if pending is None:
            made = Pending(*fields)
            pending = self._all.setdefault(_fields(made), made)
            self._all[fields] = pending
        return pending

    def changed(self, pending: Pending, name: str, value: object) -> Pending:
        """The same with another value of a field."""
        key = pending, name, value
        changed = self._changed.get(key)
        if changed is None:
            changed = self._changed[key] = self.of(*_fields(replace(pending, **{name: value})))  # type: ignore[arg-type]
        return changed


def _fields(pending: Pending) -> tuple[object, ...]:
    return tuple([getattr(pending, name) for name in Pending.__slots__])


ORDERING = ("barrier", "instruction", "wait_async", "await")
"""Operations that may be barriers or wait for something."""
LEAVING = ("return", "trap")

State = frozenset[Pending]
OnHazard = Callable[[Block, int, str, Pending], bool]
Reached = Callable[[LaneOp, State], bool]


class Hazards:
    """Looks for accesses of a program that meet, as often as is asked; only barriers may come and go in between.

    Buffers must have been placed.
    """

    def __init__(self, program: LaneProgram) -> None:
        first = program.body.ops[0] if program.body.ops else None
        self.program, self.parts = program, list[Hazards]()
        self.before: dict[LaneOp, State] = {}
        """What was pending before each operation of the program itself, not of its loops, in the last whole walk."""
        if first is not None and first.name == "partitions":
            pairs = zip(first.regions, first.attrs["warps"], strict=True)
            self.parts = [Hazards(replace(program, body=region, warps=warps)) for region, warps in pairs]
            return
        self.touches = {op: touches for op in program.body.walk() if (touches := touches_of(op))}
        values = {v for touches in self.touches.values() for t in touches for v in (t.address, t.mask) if v is not None}
        self.numbers = LaneNumbers(program, values)
        self.footprints = Footprints(program, origins(program)) if self.touches else None
        self.quiet = {op for op in program.body.walk() if not self._says(op)}
        """Operations after which as much is known, and the same is pending, as before."""
        self.known = _Known()

    def _says(self, op: LaneOp) -> bool:
        is_loud = op.name in LEAVING or op.name in ORDERING or op in self.touches
        return is_loud or bool(op.regions) or not self.numbers.needed.isdisjoint(op.results)

    def find(self, on_hazard: OnHazard) -> None:
        """Call `on_hazard(block, index, scope, earlier)` for each access that meets a pending one.

        The access is `block.ops[index]`, and a barrier of `scope` before it would order the two; the function answers
        whether it has put one there.
        """
        for part in self.parts:
            part.find(on_hazard)
        if not self.parts and self.footprints is not None:
            self.numbers.forget()
            self.before.clear()
            self._walk(on_hazard, 0, frozenset(), self._note)

    def buffers(self, op: LaneOp) -> frozenset[int]:
        """The buffers that an operation may access."""
        places = self.footprints.places if self.footprints is not None else {}
        return frozenset[int]().union(*(places.get(t.address, frozenset()) for t in self.touches.get(op, ())))

    def _note(self, op: LaneOp, state: State) -> bool:
        self.before[op] = state
        return False

    def _walk(self, on_hazard: OnHazard, index: int, state: State, reached: Reached) -> None:
        assert self.footprints is not None
        walk = _Walk(self, self.footprints, on_hazard)
        end = walk.block(self.program.body, state, index, reached)
        seen: set[State] = set()
        while self.program.programs_each > 1 and not walk.is_known:  # the next program of the block
            following = walk.returned if end is None else walk.returned | end
            if following in seen:
                break
            seen.add(following)
            end = walk.block(self.program.body, following, 0, reached)
        if end is not None:
            ops = self.program.body.ops
            walk.leave(self.program.body, len(ops) - bool(ops and ops[-1].name == "yield"), end)

    def are_none(self) -> bool:
        """Whether no access meets a pending one."""
        try:
            self.find(_stop)
        except _Found:
            return False
        return True

    def are_none_without(self, barrier: LaneOp, block: Block, top: LaneOp) -> bool:
        """Take a barrier out of `block`, which is the program's or is in its operation `top`; if accesses meet without
        it, put it back.

        `are_none` must have said so before. All is as it was before `top`; and from where what is pending is as it was
        then, too. So a kernel of many loops is not walked through once for each barrier in them.
        """
        if not self.before:  # what is known was lost
            self.are_none()
        at = next(i for i, op in enumerate(self.program.body.ops) if op is top)
        index = next(i for i, op in enumerate(block.ops) if op is barrier)
        states: dict[LaneOp, State] = {}
        last: tuple[LaneOp, object] | None = None
        same = True

        def reached(op: LaneOp, state: State) -> bool:
            nonlocal last, same
            if last is not None:
                same = same and self._results(last[0]) == last[1]
                if same and self.before.get(op) == state:
                    return True
            states[op] = state
            last = op, self._results(op)
            return False

        del block.ops[index]
        if top not in self.before:  # nothing is accessed, or it is never reached
            return True
        try:
            self._walk(_stop, at, self.before[top], reached)
        except _Found:
            block.ops.insert(index, barrier)
            if not same:
                self.before.clear()
            return False
        self.before.update(states)
        return True

    def _results(self, op: LaneOp) -> object:
        """What is known of the results of a loop or a branch: it may depend on how often it was walked through."""
        return _key([self.numbers[v] for v in op.results]) if op.regions else ()


class _Found(Exception):
    """A hazard: that there is one is all that was asked."""


def _stop(block: Block, index: int, scope: str, earlier: Pending) -> bool:
    raise _Found


class _Walk:
    def __init__(self, hazards: Hazards, footprints: Footprints, on_hazard: OnHazard) -> None:
        self.program, self.touches, self.numbers = hazards.program, hazards.touches, hazards.numbers
        self.quiet, self.known = hazards.quiet, hazards.known
        self.footprints, self.on_hazard = footprints, on_hazard
        self.places: dict[LaneOp, int] = {}
        self.returned: State = frozenset()
        """What is pending where the program returns."""
        self.is_known = False
        """Whether it ended where the rest is known."""
        self.exposed = footprints.exposed() if self.program.blocks > 1 else np.zeros(0, np.int64)

    def leave(self, block: Block, index: int, state: State) -> None:
        """The program ends before an operation: memory of other blocks must not be in use."""
        far = next((p for p in state if p.far), None)
        if far is not None:
            self.on_hazard(block, index, "cluster", far)

    def block(self, block: Block, state: State, index: int = 0, reached: Reached | None = None) -> State | None:
        """What is pending at the end; None if the end is not reached, or `reached` says that the rest is known."""
        while index < len(block.ops):
            op = block.ops[index]
            if op in self.quiet:
                index += 1
                continue
            if reached is not None and reached(op, state):
                self.is_known = True
                return None
            if op.name in LEAVING:
                if op.name == "return":
                    self.leave(block, index, state)
                    self.returned |= state
                return None
            if op.regions:
                after = self._control(op, state)
                if after is None:
                    return None
                state = after
            else:
                self.numbers.evaluate(op)
                if op in self.touches or op.name in ORDERING:
                    state, index = self._op(block, index, state)
            index += 1
        return state

    def _op(self, block: Block, index: int, state: State) -> tuple[State, int]:
        op = block.ops[index]
        footprints = tuple([self.footprints.of(touch, self.numbers) for touch in self.touches.get(op, ())])
        key = (op, state, *footprints)
        after = self.known.after.get(key)
        if after is not None:
            return after, index
        end, at = self._met(block, index, state, footprints)
        if at == index:  # no barrier was put in
            self.known.after[key] = end
        return end, at

    def _met(self, block: Block, index: int, state: State, footprints: Sequence[Footprint]) -> tuple[State, int]:
        """What is pending after an operation, and where it is, now that there may be barriers before it."""
        op = block.ops[index]
        if op.name == "barrier" or is_cluster_barrier(op, "wait"):
            return self._after_barrier(op, state), index
        if is_cluster_barrier(op, "arrive"):
            return frozenset([self.known.changed(p, "arrived", True) for p in state]), index
        awaited = waits_of(op)
        if awaited is not None:
            return self._landed(state, *awaited), index
        if op.name == "instruction" and (kind := effects_of(op.attrs["isa"]).closes):
            return frozenset([self._closed(p) if p.flight == kind else p for p in state]), index
        for touch, footprint in zip(self.touches.get(op, ()), footprints, strict=True):
            hazard = self._worst(state, touch, footprint)
            if hazard is not None and self.on_hazard is not _stop:  # the last one: a set has no order of its own
                hazard = self._worst(sorted(state, key=self._place, reverse=True), touch, footprint)
            if hazard is not None and self.on_hazard(block, index, hazard[0], hazard[1]):
                state = self._after_barrier(block.ops[index], state)
                index += 1
            if touch.later != "barrier":
                state |= {
                    self.known.of(
                        footprint, touch.how, op, False, touch.later, 0, touch.release, touch.far, False, False
                    )
                }
        return state, index

    def _place(self, pending: Pending) -> int:
        """Where an access stands among those of the program."""
        if not self.places:
            self.places.update((op, i) for i, op in enumerate(self.touches))
        return self.places[pending.op]

    def _worst(self, state: Iterable[Pending], touch: Touch, footprint: Footprint) -> tuple[str, Pending] | None:
        worst: tuple[str, Pending] | None = None
        for earlier in state:
            if earlier.flight:
                continue
            if (earlier.far or touch.far) and not self._only_reads(earlier, touch):
                if footprint.overlaps(earlier.footprint.cells):
                    return "cluster", earlier
                continue
            if earlier.block:
                continue
            if touch.release:
                scope = footprint.after(earlier.footprint) if not earlier.release else ""
                scope = "warp" if scope and touch.each else scope
            elif earlier.how == touch.how and touch.how != "write":
                continue
            else:
                scope = self.footprints.meet(earlier.footprint, footprint)
            if scope == "block":
                if self.program.blocks == 1:
                    return scope, earlier
                worst = scope, earlier
            elif worst is None and scope == "warp" and not earlier.warp:
                worst = scope, earlier
        return worst

    @staticmethod
    def _only_reads(earlier: Pending, touch: Touch) -> bool:
        return earlier.how == touch.how != "write"

    def _after_barrier(self, op: LaneOp, state: State) -> State:
        if op.name == "instruction":
            return frozenset(p for p in state if p.flight or not p.arrived)
        if is_cluster_barrier(op, "wait"):
            return frozenset(p for p in state if p.flight)
        if is_block_barrier(self.program, op):
            is_any = len(self.exposed) > 0
            left = [p for p in state if not p.flight and (p.far or (is_any and p.footprint.overlaps(self.exposed)))]
            kept = [p for p in state if p.flight]
            return frozenset([*kept, *(self.known.changed(p, "block", True) for p in left)])
        if op.attrs["scope"] == "warp":
            return frozenset([self.known.changed(p, "warp", True) for p in state])
        return state

    def _closed(self, pending: Pending) -> Pending:
        return self.known.changed(pending, "groups", min(pending.groups + 1, GROUPS))

    def _landed(self, state: State, kind: str, left: int) -> State:
        """Accesses on their way have landed: they are pending as any other. Those of the last groups only perhaps: so
        many may be left."""
        landed = [self.known.of(p.footprint, p.how, p.op) for p in state if p.flight == kind]
        kept = [p for p in state if p.flight != kind or 0 < left >= p.groups]
        return frozenset([*kept, *landed])

    # -- control flow -------------------------------------------------------------------------------------------------

    def _control(self, op: LaneOp, state: State) -> State | None:
        if op.name == "for":
            return self._for(op, state)
        if op.name == "while":
            return self._while(op, state)
        return self._if(op, state)

    def _if(self, op: LaneOp, state: State) -> State | None:
        states: list[State | None] = []
        values: list[Sequence[Array | None]] = []
        for region in op.regions:
            states.append(self.block(region, state))
            if states[-1] is not None:
                values.append(self._handed_on(region))
        if len(op.regions) < 2:
            states.append(state)
        self._join(op.results, values)
        alive = [s for s in states if s is not None]
        return frozenset().union(*alive) if alive else None

    def _handed_on(self, region: Block, skip: int = 0) -> list[Array | None]:
        last = region.ops[-1] if region.ops else None
        if last is None or last.name not in ("yield", "condition"):
            return []
        return [self.numbers[v] for v in last.operands[skip:]]

    def _join(self, results: Sequence[Value], ways: Sequence[Sequence[Array | None]]) -> None:
        """What is the same whichever way was taken is known."""
        for i, value in enumerate(results):
            choices = [way[i] if i < len(way) else None for way in ways]
            self.numbers.set(value, _same(choices))

    def _for(self, op: LaneOp, state: State) -> State:
        body = op.regions[0]
        indices = self._indices(op)
        carried = [self.numbers[v] for v in op.operands[3:]]
        ways, exits = [carried], state
        seen: set[object] = set()
        iteration = 0
        while True:
            index = next(indices)
            key = (_key(carried), state, index)
            if key in seen:
                break
            seen.add(key)
            self.numbers.set(body.arguments[0], None if index is None else _everywhere(index), partial=True)
            for value, array in zip(body.arguments[1:], carried, strict=True):
                self.numbers.set(value, array)
            after = self.block(body, state)
            if after is None:
                break
            again = self._handed_on(body)
            iteration += 1
            if iteration >= ITERATIONS:  # it goes round for too long: what may come is taken together
                after |= state
                again = [_same(pair) for pair in zip(again, carried, strict=True)]
            state, carried, exits = after, again, exits | after
            ways.append(carried)
        self._join(op.results, ways)
        return exits

    def _indices(self, op: LaneOp) -> Iterator[int | None]:
        """The loop's index iteration by iteration, as a remainder by MODULUS; None where nothing is known or asked."""
        lower, _, step = (self.numbers[v] for v in op.operands[:3])
        wanted = op.regions[0].arguments[0] in self.numbers.needed
        if not wanted or lower is None or step is None or int(lower.flat[0]) < 0:
            return repeat(None)
        return (i % MODULUS for i in count(int(lower.flat[0]), int(step.flat[0])))

    def _while(self, op: LaneOp, state: State) -> State | None:
        before, after = op.regions
        carried = [self.numbers[v] for v in op.operands]
        exits: State | None = None
        seen: set[object] = set()
        ways: list[Sequence[Array | None]] = []
        iteration = 0
        while (_key(carried), state) not in seen:
            seen.add((_key(carried), state))
            for value, array in zip(before.arguments, carried, strict=True):
                self.numbers.set(value, array)
            middle = self.block(before, state)
            if middle is None:
                break
            exits = middle if exits is None else exits | middle
            numbers = self._handed_on(before, 1)
            ways.append(numbers)
            for value, array in zip(after.arguments, numbers, strict=False):
                self.numbers.set(value, array)
            end = self.block(after, middle)
            if end is None:
                break
            again = self._handed_on(after)
            iteration += 1
            if iteration >= ITERATIONS:
                end |= state
                again = [_same([a, b]) for a, b in zip(again, carried, strict=True)]
            state, carried = end, again
        self._join(op.results, ways)
        return exits


@lru_cache(maxsize=MODULUS)
def _everywhere(index: int) -> Array:
    """A number that is the same in all lanes; one array, so that what follows from it is known to be the same too."""
    return np.full((1, 1, 1), index)


def _same(choices: Sequence[Array | None]) -> Array | None:
    first = choices[0] if choices else None
    if first is None or any(c is None or not np.array_equal(first, c) for c in choices[1:]):
        return None
    return first


def _key(arrays: Sequence[Array | None]) -> tuple[object, ...]:
    return tuple(None if a is None else (a.shape, a.tobytes()) for a in arrays)
