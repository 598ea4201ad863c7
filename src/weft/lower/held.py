"""Hold less across barriers: recompute values, or park them in shared memory, if a thread has too few registers.

    %x = extf %row                  64 words            %x = extf %row
    %m = ... max of %x                                  %m = ... max of %x
    barrier                                   becomes   barrier                     32 words: %row is held
    %e = exp(%x - %m)                                   %y = extf(%row xor %zero)
    %s = ... sum of %e                                  %e = exp(%y - %m)
    barrier                         64 words            store shared %e[0:32]; barrier    32 words
    ... %e / %s                                         ... (load shared, and %e[32:64]) / %s

A thread of a block of 1,024 has 64 registers. Further words spill to local memory, which goes through the caches: rows
of 65,536 elements then reach only 0.4 to 0.6 of copy speed. There are two remedies, and the first is used as far as it
helps:

- A value that a few cheap operations compute from fewer words (elements extended, a mean subtracted) is computed again
  after the barrier. `%zero` is a number that no compiler knows to be 0, so that none identifies the two values and
  holds the first.
- Words are parked in shared memory: each thread has places of its own, 16 bytes at a time, so that no thread waits for
  another and there are no bank conflicts. Values that are computed from parked words take over their places.

The same is done in the body of a loop, as for a cross entropy that loads rows of 50,257 as tiles of 65,536 and reduces
each tile three times: it spilled 702 words and took 2.7 ms on an H200, and takes 0.28 ms now. And it is done in a
cluster, where each block holds its part of the row and sends its results of reductions to the others.

This file decides what is recomputed and what is parked. in_parts.py rewrites the program so that it computes each value
a few registers at a time, and so needs few registers between barriers as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram, Value, is_elementwise
from weft.ops.table import ROWS
from weft.targets.table import effects_of

from .granules import LAZY, WIDE, granules_of

LARGE = 512
"""Threads of a block that is looked at: of smaller ones several fit, whatever they hold."""
OTHERS, IN_HAND = 24, 4
"""Registers for addresses, masks, and what is computed at the moment; and for twice what is loaded together of a tile
of which branches compute some, but so many at least."""
FITS = 32
"""Words that may be held in any case: a program that holds no more stays as it is."""
FEW_ON_THE_WAY = 16
"""Words of rows that are loaded a part at a time, for which there is room in that."""
FEW_BEHIND = 8
"""Words of tiles that are loaded behind a barrier, a part of each, for which there is room too."""
SPARE = 4
"""How many of these words may be in flight from memory."""
MOST = 6
"""Operations by which something may be made again."""
PARKED_AT_A_TIME = 4
"""Words: 16 bytes."""
KNOWN = (
    *("constant", "undefined", "program_id", "num_programs", "ballot", "load", "store", "shared", "barrier", "if"),
    *("yield", "return", "prefetch", *LAZY),
)
FREE = ("linear", "constant", "rename", "join")


@dataclass
class Plan:
    """What becomes of the values of a program, part by part: the parts lie between barriers of the block."""

    lazy: dict[Value, int]
    """The values that are computed some registers at a time, and how many at least."""
    blocks: int
    """How many blocks are to run at a time."""
    live: list[list[Value]] = field(default_factory=list)
    """The values that are live across each barrier, in order."""
    parked: dict[Value, int] = field(default_factory=dict)
    """How many words of a value, the first ones, are in shared memory, from when they are computed on."""
    places: dict[Value, int] = field(default_factory=dict)
    """Where the parked words of a value begin: after so many words."""
    instead: dict[Value, Value] = field(default_factory=dict)
    """Whose places a value takes over, each group of registers when those of the other have been read."""
    words: int = 0
    """How many words of shared memory a thread has for all of them."""
    spare: list[int] = field(default_factory=list)
    """The words that may be in flight from memory in each part, besides those that are held when it begins."""
    again: int = 0
    """How many values are made again behind barriers."""


def plan(program: LaneProgram) -> Plan | None:
    """What to do about a program; None for one that has registers enough, or is not of the kind."""
    threads = program.warps * program.lanes
    if threads < LARGE or program.registers or not _is_plain(program):
        return None
    machine = program.machine
    blocks = max(1, min(machine.enough_threads // threads, machine.blocks_at_a_time(threads, program.shared_bytes)))
    chosen = Plan(granules_of(program.body), blocks)
    in_branches = max((held_words(v, g) for v, g in chosen.lazy.items() if v.op and v.op.regions), default=0)
    uses = _Uses(program, chosen)
    ahead = max(0, _on_the_way(program, chosen) - FEW_ON_THE_WAY) + max(0, uses.behind() - FEW_BEHIND)
    most = machine.registers // (threads * blocks) - OTHERS - max(IN_HAND, 2 * in_branches) - ahead
    if all(uses.words(wall) <= max(most, FITS) for wall in range(uses.walls)):
        return None
    for wall in range(uses.walls):
        while uses.words(wall) > most and uses.drop(wall):
            chosen.again += 1
    reserved = machine.reserved_bytes
    room = (machine.shared_bytes + reserved) // blocks - reserved - program.shared_bytes
    uses.park(most, room // (4 * threads) // PARKED_AT_A_TIME * PARKED_AT_A_TIME)
    chosen.live = [uses.live(wall) for wall in range(uses.walls)]
    chosen.spare = [most, *(most + SPARE - uses.words(wall) for wall in range(uses.walls))]
    return chosen if chosen.again or chosen.parked else None


def is_cheap(op: LaneOp) -> bool:
    """Whether an operation may be done again."""
    row = ROWS.get(op.name)
    return op.name in FREE or (row is not None and row.cost == 1)


def _is_plain(program: LaneProgram) -> bool:
    """Whether all operations are known, nothing is volatile, and barriers are in no branch."""
    for op in program.body.walk():
        if op.name not in KNOWN and not is_elementwise(op.name) and not _exchanges(op):
            return False
        if op.attrs.get("volatile") or (op.name in ("load", "store") and op.attrs["space"] == "cluster"):
            return False
        if any(inner.name == "barrier" for region in op.regions for inner in region.walk()):
            return False
    return True


def _exchanges(op: LaneOp) -> bool:
    """Whether an operation is part of how blocks of a cluster exchange single results."""
    if op.name == "instruction":
        effects = effects_of(op.attrs["isa"])
        return not op.results and bool(effects.meets or effects.reaches) and all(x.count == 1 for x in op.operands)
    return op.name == "remote" and op.result.count == 1


def _on_the_way(program: LaneProgram, plan: Plan) -> int:
    """The most words that are loaded ahead at a time, of rows that are loaded where they are used."""
    last: dict[Value, int] = {}
    for i, op in enumerate(program.body.ops):
        last.update(dict.fromkeys(op.operands, i))
        last.update((x, i) for region in op.regions for inner in region.walk() for x in inner.operands)
    ends: dict[int, int] = {}
    now = most = 0
    for i, op in enumerate(program.body.ops):
        if op.name == "load" and op.attrs["space"] == "global" and op.results[0] not in plan.lazy:
            words, end = held_words(op.results[0]), last.get(op.results[0], i)
            now += words
            ends[end] = ends.get(end, 0) + words
        most = max(most, now)
        now -= ends.pop(i, 0)
    return most


def held_words(value: Value, registers: int = 0) -> int:
    """Registers of 32 bits that a value takes, or so many of its own registers."""
    return -(-(registers or value.count) * ELEMENT_BITS[value.elem] // 32)


class _Uses:
    """In which part of the program each value is made, and in which it is wanted."""

    def __init__(self, program: LaneProgram, plan: Plan) -> None:
        self.plan = plan
        self.definitions: dict[Value, int] = {}
        self.wanted: dict[Value, set[int]] = {}
        self.places: set[Value] = set()
        """What is computed cheaply from where an element is in its tile: it is computed where it is wanted."""
        part = 0
        for op in program.body.ops:
            if op.name == "barrier" and op.attrs["scope"] == "block":
                part += 1
            inner = [x for region in op.regions for x in region.walk()]
            for user in (op, *inner):
                for value in user.operands:
                    if value in self.definitions:
                        self.wanted[value].add(part)
            for value in op.results:
                if value not in plan.lazy:
                    continue
                if is_cheap(op) and all(x in self.places or x not in plan.lazy for x in op.operands):
                    self.places.add(value)
                else:
                    self.definitions[value], self.wanted[value] = part, set()
        self.walls = part

    def behind(self) -> int:
        """The most words that one part of each tile takes that is loaded behind a barrier."""
        counts: dict[int, int] = {}
        for value, part in self.definitions.items():
            if part and value.op is not None and value.op.name == "load":
                counts[part] = counts.get(part, 0) + held_words(value, self.plan.lazy[value])
        return max(counts.values(), default=0)

    def live(self, wall: int) -> list[Value]:
        """What is there before a barrier, and wanted behind it."""
        return [v for v, part in self.definitions.items() if part <= wall and any(w > wall for w in self.wanted[v])]

    def words(self, wall: int) -> int:
        """How many words of registers tiles take then."""
        return sum(held_words(v) - self.plan.parked.get(v, 0) for v in self.live(wall) if v.count >= WIDE)

    def drop(self, wall: int) -> bool:
        """Have something be made again behind a barrier, what was made last if there is a choice; whether it helps."""
        live = self.live(wall)
        for value in reversed(live):
            sources = self._sources(value, set(live))
            if sources is None or sum(held_words(s) for s in sources if s not in live) >= held_words(value):
                continue
            behind = {w for w in self.wanted[value] if w > wall}
            self.wanted[value] -= behind
            for source in sources:
                self.wanted[source] |= behind
            return True
        return False

    def _sources(self, value: Value, live: set[Value]) -> set[Value] | None:
        """What a value can be made of again; None where that takes too much."""
        sources: set[Value] = set()
        cost, todo, seen = 0, [value], {value}
        while todo:
            op = todo.pop().op
            if op is None or not is_cheap(op):
                return None
            cost += op.name not in FREE
            for x in op.operands:
                if x in seen or x not in self.definitions:
                    continue
                seen.add(x)
                if x not in live and x.op is not None and is_cheap(x.op):
                    todo.append(x)
                else:
                    sources.add(x)
        return sources if cost <= MOST else None

    def park(self, most: int, room: int) -> None:
        """Park what is more than so many words, as far as there is room."""
        for wall in range(self.walls):
            for value in sorted(self.live(wall), key=held_words, reverse=True):
                excess = self.words(wall) - most
                if excess <= 0 or value in self.plan.parked:
                    continue
                if ELEMENT_BITS[value.elem] in (16, 32) and value.count >= WIDE:
                    self._park(value, excess, room)

    def _park(self, value: Value, excess: int, room: int) -> None:
        """Find a place for words of a value: another's that is not wanted any more, or one behind all."""
        plan, step = self.plan, max(PARKED_AT_A_TIME, held_words(value, self.plan.lazy[value]))
        together = step * 32 // ELEMENT_BITS[value.elem]
        if value.count % together or together % plan.lazy[value]:
            return
        plan.lazy[value] = together
        words, left = min(-(-excess // step) * step, held_words(value)), (room - plan.words) // step * step
        for other, has in plan.parked.items():
            like = (other.elem, other.count, plan.lazy[other]) == (value.elem, value.count, plan.lazy[value])
            taken = other in plan.instead.values()
            if like and has >= min(words, left) and not taken and max(self.wanted[other]) <= self.definitions[value]:
                plan.parked[value], plan.places[value] = min(words, has), plan.places[other]
                plan.instead[value] = other
                return
        if words := min(words, left):
            plan.parked[value], plan.places[value] = words, plan.words
            plan.words += words
