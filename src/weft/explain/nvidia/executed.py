"""How often a warp executes each instruction of the machine code, from what was counted of the lane program.

    for i in range(n):           lane program: 128 turns
      $L__BB0_2: ...             PTX: a loop at the same place among loops
        LDG; LDG; LDG; LDG       machine code: a loop with four copies of each instruction, which turns 32 times

LLVM keeps the loops as they are, so those of the PTX and of the lane program are paired as they are nested. ptxas may
do several iterations at a time, or some in front of the loop or behind it: how many copies a part of the code has of a
loop of the PTX is seen at instructions of which there is one for each instruction of the PTX. Where a block is not in
every turn, the side of the `if` that it is of says how often it is executed (sides.py); without one, what was counted
of accesses on its line; what calls a function is a way that is hardly taken, as a quotient of denormal numbers.

Where warps have parts of their own (`partitions`), each has its own loops: what only one of them reaches, or is reached
from, is executed by the warps of that part.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor
from statistics import median_low

from weft.base import Span
from weft.ir.lane import Block, LaneOp

from .cubin import Code
from .flow import Flow, Loop, of_instructions, of_ptx
from .sass import Instruction, decoded

__all__ = ["Executed", "Part", "executed"]

ACCESSES = (
    *("LDG", "STG", "LDS", "STS", "LDSM", "STSM", "LDGSTS", "SHFL", "ATOMS", "ATOMG", "REDG", "BAR", "UTMALDG"),
    "UTMASTG",
)
STAYING = (*ACCESSES, "BRA")
"""What is not done elsewhere than the PTX has it."""
PRODUCTS = ("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA")
SURE = {**dict.fromkeys(ACCESSES, 0), **dict.fromkeys(PRODUCTS, 1), "MUFU": 2}
"""How sure it is that there is one of an instruction for each of the PTX, the surest first: a product of 8 bits may
become two, and what computes a sine takes several."""
LEAST_SURE = 3
KINDS = {
    "LDG": "load.global", "STG": "store.global", "LDS": "load.shared", "STS": "store.shared", "SHFL": "shuffle",
    "LDGSTS": "copy_async", "REDG": "atomic.global", "ATOMG": "atomic.global", "ATOMS": "atomic.shared",
}  # fmt: skip
"""How counters of accesses begin that are done by an instruction, behind "kind:"."""


@dataclass(frozen=True)
class Part:
    """What some warps of a block do."""

    warps: int
    share: float
    """Of the warps of the block."""
    blocks: frozenset[int]
    """Those of the code that they execute, as far as any warp does."""


@dataclass(frozen=True)
class Executed:
    """Machine code, its flow, and how often a warp executes each block."""

    instructions: list[Instruction]
    flow: Flow
    times: list[float]
    """By block, for a warp."""
    turns: Mapping[int, float]
    """By the first block of a loop, how often it turns each time that it is entered."""
    code: Code
    parts: tuple[Part, ...] = ()
    """Where warps do different things: what each does that has loops."""

    def each(self) -> Iterator[tuple[Instruction, float]]:
        """The instructions with how often a warp executes each."""
        for block, times in zip(self.flow.blocks, self.times, strict=True):
            for i in block:
                yield self.instructions[i], times


def executed(
    code: Code,
    body: Block,
    turns: Callable[[LaneOp], float],
    places: Mapping[Span | None, Counter[str]],
    warps: float,
    shares: Sequence[float | None] = (),
) -> Executed | None:
    """How often instructions are executed; None where loops of the PTX are not those of the lane program.

    `turns` says how often a loop of the lane program turns, `places` has counters of so many warps by place, `shares`
    the part of iterations that execute a line of the PTX (sides.py).
    """
    instructions = list(decoded(code.text))
    if not instructions:
        return None
    counting = _Counting(code, instructions, shares)
    lanes = _loops_of(body)
    if not counting.pair(counting.ptx.loops, lanes, turns):
        lanes = counting.alike(lanes, turns)
        if not lanes:
            return None
    top = next((op for op in body.ops if op.name == "partitions"), None)
    if top is None:
        return counting.all(places, warps)
    owners = {id(loop): i for i, region in enumerate(top.regions) for loop in _loops_of(region)}
    if any(_works(region) and i not in owners.values() for i, region in enumerate(top.regions)):
        return None  # which part of the code is whose is known by loops
    heads = {loop.head: owners.get(id(lane)) for loop, lane in zip(counting.ptx.loops, lanes, strict=True)}
    return counting.all(places, warps, heads, top.attrs["warps"])


TELLING = ("wgmma.mma_async", "mma.sync", "cp.async.bulk.tensor")
"""Instructions that tell loops apart."""


def _does(loop: LaneOp) -> frozenset[str]:
    """What a loop of the lane program has of them."""
    isa = [op.attrs["isa"] for region in loop.regions for op in region.walk() if op.name == "instruction"]
    starts = dict(zip(TELLING, ("wgmma.m64", "mma.sync", "cp.async.bulk.tensor"), strict=True))
    return frozenset(name for name, start in starts.items() if any(each.startswith(start) for each in isa))


def _works(region: Block) -> bool:
    """Whether warps do anything in a part that takes time."""
    return any(
        op.name in ("load", "store", "copy_async", "atomic")
        or (op.name == "instruction" and not op.attrs["isa"].startswith("setmaxnreg"))
        for op in region.walk()
    )


def _loops_of(body: Block) -> list[LaneOp]:
    """The loops that are in no other one of this block."""
    found: list[LaneOp] = []
    for op in body.ops:
        if op.name in ("for", "while"):
            found.append(op)
        else:
            found += [loop for region in op.regions for loop in _loops_of(region)]
    return found


class _Counting:
    def __init__(self, code: Code, instructions: list[Instruction], shares: Sequence[float | None]) -> None:
        self.code, self.instructions, self.shares = code, instructions, shares
        self.flow, self.ptx = of_instructions(instructions), of_ptx(code.ptx)
        self.loop_of_line: list[Loop | None] = [None] * (len(code.ptx) + 1)
        for block, within in zip(self.ptx.blocks, self.ptx.within, strict=True):
            for i in block:
                self.loop_of_line[i + 1] = within
        self.surest: dict[int, int] = {}
        """By the head of a loop of the PTX, what kind of instructions copies of it are counted by."""
        for op in instructions:
            within = self.loop_of_line[self.line(op)]
            if within is not None:
                sure = SURE.get(op.name, LEAST_SURE)
                self.surest[within.head] = min(sure, self.surest.get(within.head, LEAST_SURE))
        self.turns: dict[int, float] = {}
        """By the head of a loop of the PTX."""
        self.of: dict[int, Loop | None] = {}
        """By the head of a loop of the machine code, that of the PTX."""

    def pair(self, loops: list[Loop], lanes: list[LaneOp], turns: Callable[[LaneOp], float]) -> bool:
        """Find out how often loops of the PTX turn; whether they are as nested as those of the lane program."""
        if len(loops) != len(lanes):
            return False
        for loop, lane in zip(loops, lanes, strict=True):
            self.turns[loop.head] = turns(lane)
            if not self.pair(loop.loops, [each for region in lane.regions for each in _loops_of(region)], turns):
                return False
        return True

    def alike(self, lanes: list[LaneOp], turns: Callable[[LaneOp], float]) -> list[LaneOp]:
        """The same where LLVM has left out loops that do not turn, of several at one place: what is left of them has
        all their turns. By loop of the PTX one of the lane program; nothing where they cannot be told apart."""
        groups = [list(group) for _, group in groupby(lanes, key=lambda lane: (lane.span, _does(lane)))]
        of: list[LaneOp] = []
        rest = iter(groups)
        group = next(rest, [])
        left = Counter[int]()
        for loop in self.ptx.loops:
            does = self.does(loop)
            while group and _does(group[0]) != does:
                group = next(rest, [])
            if not group or loop.loops or any(_loops_of(region) for lane in group for region in lane.regions):
                return []
            of.append(group[0])
            left[id(group[0])] += 1
        if any(not left[id(each[0])] or left[id(each[0])] > len(each) for each in groups):
            return []
        for loop, lane in zip(self.ptx.loops, of, strict=True):
            mine = next(each for each in groups if each[0] is lane)
            self.turns[loop.head] = sum(turns(each) for each in mine) / left[id(lane)]
        return of

    def does(self, loop: Loop) -> frozenset[str]:
        """What a loop of the PTX has of what tells loops apart."""
        lines = [self.code.ptx[i] for block in loop.blocks for i in self.ptx.blocks[block]]
        return frozenset(name for name in TELLING if any(name in line for line in lines))

    # -- copies ----------------------------------------------------------------------------------------------------

    def line(self, op: Instruction) -> int:
        """Of the PTX."""
        line = self.code.line_at[op.place]
        return line if line < len(self.loop_of_line) else 0

    def ops(self, blocks: Iterable[int]) -> Iterator[Instruction]:
        """The instructions of blocks."""
        for block in sorted(blocks):
            for i in self.flow.blocks[block]:
                yield self.instructions[i]

    def copies_in(self, blocks: Iterable[int], loop: Loop, if_none: int) -> int:
        """How many iterations of a loop of the PTX blocks have side by side."""
        surest = self.surest.get(loop.head, LEAST_SURE)
        found = Counter(
            (self.line(op), op.name)
            for op in self.ops(blocks)
            if SURE.get(op.name, LEAST_SURE) == surest and self.loop_of_line[self.line(op)] is loop
        )
        if surest == LEAST_SURE and not if_none:
            return 0
        least: dict[int, int] = {}
        for (line, _), number in found.items():
            least[line] = min(number, least.get(line, number))
        return median_low(least.values()) if least else if_none

    def ptx_loop(self, loop: Loop) -> Loop | None:
        """The loop of the PTX that one of the machine code is: that of the branch back, or of most of it."""
        last = self.instructions[self.flow.blocks[loop.latches[-1]].stop - 1]
        found = self.loop_of_line[self.line(last)]
        if found is not None and self.of.get(loop.parent.head if loop.parent else -1) is not found:
            return found
        votes = Counter(
            within.head
            for op in self.ops(b for b in loop.blocks if self.flow.within[b] is loop)
            if (within := self.loop_of_line[self.line(op)]) is not None
        )
        heads = {each.head: each for each in self.ptx.within if each is not None}
        return heads[votes.most_common(1)[0][0]] if votes else None

    # -- times -----------------------------------------------------------------------------------------------------

    def all(
        self,
        places: Mapping[Span | None, Counter[str]],
        warps: float,
        owners: Mapping[int, int | None] | None = None,
        of_parts: Sequence[int] = (),
    ) -> Executed:
        """How often each block is executed. `owners` says by the head of an outer loop of the PTX which part it is of,
        of parts that have so many warps."""
        self.times = [0.0] * len(self.flow.blocks)
        self.loop_turns: dict[int, float] = {}
        self.settled: set[int] = set()
        """Blocks that are copies of iterations, of which it is known how often they are executed."""
        self.level(None, self.flow.loops, 1.0)
        self.parts = self.divided(owners, of_parts) if owners else ()
        self.branches(places, warps)
        return Executed(self.instructions, self.flow, self.times, self.loop_turns, self.code, self.parts)

    def divided(self, owners: Mapping[int, int | None], warps: Sequence[int]) -> tuple[Part, ...]:
        """The parts that have loops; what is executed by one of them alone is so by its share of the warps."""
        loops: defaultdict[int, set[int]] = defaultdict(set)
        for loop in self.flow.loops:
            of = self.of.get(loop.head)
            owner = owners.get(of.head) if of is not None else None
            if owner is not None:
                loops[owner].add(loop.head)
        near = {owner: self.flow.around(heads) for owner, heads in loops.items()}
        parts = []
        for owner, blocks in sorted(near.items()):
            share = warps[owner] / sum(warps)
            others = frozenset[int]().union(*(b for other, b in near.items() if other != owner))
            for block in blocks - others:
                self.times[block] *= share
            parts.append(Part(warps[owner], share, blocks))
        for block in set(range(len(self.times))).difference(*near.values()):
            self.times[block] = 0.0  # of warps that have nothing to do
        return tuple(parts)

    def level(self, loop: Loop | None, loops: list[Loop], times: float) -> None:
        """The blocks of a loop, or of none, that are in no loop within it; and those loops."""
        blocks = [i for i, within in enumerate(self.flow.within) if within is loop]
        for block in blocks:
            self.times[block] = times
        inner: defaultdict[int, list[Loop]] = defaultdict(list)
        mine = self.of.get(loop.head) if loop is not None else None
        within = self.ptx_loops_within(mine)
        for each in loops:
            self.of[each.head] = found = self.ptx_loop(each)
            if found is not None and found in within:
                inner[found.head].append(each)
            else:  # of no loop right inside of this one, as the loop that waits for an mbarrier
                self.loop_turns[each.head] = 1.0
        for of in within:
            self.unrolled(of, inner[of.head], blocks, times)
        for each in loops:
            self.level(each, each.loops, times * self.loop_turns[each.head])

    def ptx_loops_within(self, loop: Loop | None) -> list[Loop]:
        """The loops of the PTX right inside of one, or in none."""
        return loop.loops if loop is not None else self.ptx.loops

    def unrolled(self, of: Loop, loops: list[Loop], around: list[int], times: float) -> None:
        """The turns of a loop of the PTX, given to the loops of the machine code that do them, and to what is outside
        of them."""
        left = self.turns[of.head]
        straight = {block: n for block in around if (n := self.copies_in([block], of, 0))}
        self.settled.update(straight)
        if not loops:
            total = sum(straight.values())
            for block in straight:
                self.times[block] = times * min(1.0, left / total)
            return
        for block in [b for b in straight if self.flow.always(b)]:
            left -= straight.pop(block)
        copies = {each.head: self.copies_in(self.own(each), of, 1) for each in loops}
        for each in sorted(loops, key=lambda each: -copies[each.head]):
            number = copies[each.head]
            is_last = number == 1 or (len(loops) == 1 and not straight)
            turns = left / number if is_last else floor(left / number)
            self.loop_turns[each.head] = max(0.0, turns)
            left -= turns * number
        for block, number in sorted(straight.items(), key=lambda item: -item[1]):
            part = max(0.0, min(1.0, left / number))
            self.times[block] = times * part
            left -= number * part

    def own(self, loop: Loop) -> list[int]:
        """The blocks of a loop that are in none within it."""
        return [b for b in loop.blocks if self.flow.within[b] is loop]

    # -- branches --------------------------------------------------------------------------------------------------

    def branches(self, places: Mapping[Span | None, Counter[str]], warps: float) -> None:
        """Blocks that are not in every turn."""
        counted: defaultdict[tuple[str, int, str], float] = defaultdict(float)
        for span, counts in places.items():
            for name, found in counts.items() if span is not None else ():
                if span is not None and name.startswith("kind:"):
                    counted[span.file, span.line, ".".join(name.removeprefix("kind:").split(".")[:2])] += found
        sure: defaultdict[tuple[str, int, str], float] = defaultdict(float)
        maybe: defaultdict[tuple[str, int, str], float] = defaultdict(float)
        open_blocks = [i for i in range(len(self.flow.blocks)) if i not in self.settled and not self.always(i)]
        is_open = set(open_blocks)
        for i in range(len(self.flow.blocks)):
            for op in self.ops([i]):
                if op.name in KINDS:
                    (maybe if i in is_open else sure)[self.kind(op)] += self.times[i]
        lines: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        parts = {}
        for key, number in maybe.items():
            parts[key] = max(0.0, min(1.0, (counted[key] / warps - sure[key]) / number)) if number else 0.0
            lines[key[:2]].append(parts[key])
        for i in open_blocks:
            ops = list(self.ops([i]))
            if any(op.name in ("CALL", "RET") for op in ops):
                self.times[i] = 0.0
                continue
            share = self.share(ops)
            if share is not None:
                self.times[i] *= share
                continue
            likely = [parts[self.kind(op)] for op in ops if op.name in KINDS]
            if not likely:
                likely = [part for op in ops for part in lines.get(self.code.source_at[op.place], ())]
            self.times[i] *= sum(likely) / len(likely) if likely else 1.0

    def share(self, ops: Sequence[Instruction]) -> float | None:
        """The part of iterations that execute most of these instructions; None where it is not known.

        Of what stays where the PTX has it, if there is any: what is only computed, ptxas may do on each side.
        """
        found = [(self.shares[line], op.name) for op in ops if (line := self.line(op)) < len(self.shares)]
        staying: list[float | None] = [share for share, name in found if share is not None and name in STAYING]
        votes = Counter(staying or [share for share, _ in found])
        return votes.most_common(1)[0][0] if votes else None

    def always(self, block: int) -> bool:
        """Whether all warps whose part a block is of execute it, each time that they are where it is."""
        mine = [part.blocks for part in self.parts if block in part.blocks]
        return self.flow.always(block, mine[0] if len(mine) == 1 else None)

    def kind(self, op: Instruction) -> tuple[str, int, str]:
        """The key of what was counted of an access."""
        return (*self.code.source_at[op.place], KINDS[op.name])
