"""The time of a block alone, by the machine code: each instruction when the control words let it issue.

    LDG R4 sets barrier 0         issued at 0, there after the latency of memory
    FADD R5, R5, R4 awaits 0      issued when it is there, and not before

ptxas has put instructions in order and has written down how many cycles each waits for the one before, and for which
barriers. One warp is followed, and the others of its block are taken to do the same beside it: a scheduler issues for
all of its warps before the next instruction, and a unit does so much work. Unknown are only the times of what takes no
fixed time, which are constants of the machine, and which way branches go, which `executed.py` counts. Of a loop three
turns are followed: the difference of the last two is the time of one. Where copies are begun several turns ahead, not
every turn waits: twice as many turns are followed as there are copies under way, and the mean of the last ones counts.

Where warps have parts of their own, each part is followed by itself, as if the others were always ahead of it: the one
that takes the longest is what the block takes. Its groups of four warps go their own ways: while one multiplies, the
other has time for the rest. So it is one group that is followed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from weft.explain.costs import Costs

from .executed import Executed, Part
from .flow import Loop
from .sass import NONE, Instruction

__all__ = ["Schedule", "scheduled"]

FOLLOWED, SELDOM = 3, 2
"""Turns of a loop that are followed, at most; and of one that turns less than once, as of several of which a program
enters one: the last is as long as they are on the average of all programs."""
READ = 14.0
"""Cycles until a store has read its operands (f)."""
CYCLES = {"alu": 2.0, "heavy": 2.0, "fma": 1.0, "xu": 8.0, "double": 2.0, "uniform": 2.0, "memory": 1.0}
"""Of a scheduler, of which its unit has nothing else to do, for an instruction of one warp (e)."""
OTHER_LATENCIES = {
    "LDC": 30.0, "ULDC": 30.0, "S2R": 25.0, "S2UR": 25.0, "R2UR": 12.0, "LDL": 33.0, "VOTEU": 12.0,
    "DADD": 16.0, "DMUL": 16.0, "DFMA": 16.0, "DSETP": 16.0,
}  # fmt: skip
"""Cycles until the barrier of an instruction of no fixed time is down, of those that `Costs` has no name for (a)."""
ACCESSES = ("LDG", "STG", "LDS", "STS", "LDSM", "STSM", "LDGSTS", "SHFL", "LDL", "STL", "ATOMS", "ATOMG", "REDG")
"""What the L1 cache does, and shared memory."""
SPINNING = 2
"""Blocks of a loop that has nothing in it but a wait."""
GROUP = 4
"""Warps that give a matrix unit a product together."""


@dataclass
class Schedule:
    """What was found."""

    time: float = 0.0
    """Cycles."""
    groups: float = 1.0
    """How many groups of warps go through it, each by itself."""
    lines: defaultdict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))
    """Cycles by line of the source."""


def scheduled(
    found: Executed, costs: Costs, latencies: Mapping[tuple[str, int], float], warps: int, matrix: float, passes: float
) -> Schedule:
    """The schedule of one warp of a block of so many; `latencies` are those of memory by file and line, `matrix` what a
    product of one warp takes of a scheduler's matrix unit, `passes` what a word of an access takes of the L1 cache."""
    if not found.parts:
        return _Scheduler(found, costs, latencies, warps, matrix, passes).all()
    parts = [
        _Scheduler(found, costs, latencies, min(GROUP, part.warps), matrix, passes, part).all() for part in found.parts
    ]
    longest = max(range(len(parts)), key=lambda i: parts[i].time)
    whole = Schedule(costs.bulk_latency + parts[longest].time)  # the first copies have to be waited for
    whole.groups = max(1.0, found.parts[longest].warps / GROUP)
    for part, schedule in zip(found.parts, parts, strict=True):
        for line, cycles in schedule.lines.items():
            whole.lines[line] += cycles * part.share
    return whole


class _Scheduler:
    def __init__(
        self,
        found: Executed,
        costs: Costs,
        of_memory: Mapping[tuple[str, int], float],
        warps: int,
        matrix: float,
        passes: float,
        part: Part | None = None,
    ) -> None:
        self.part = part
        self.found, self.costs, self.of_memory, self.warps, self.matrix = found, costs, of_memory, warps, matrix
        self.passes = passes * warps
        self.share = max(1.0, warps / costs.schedulers)
        self.now = 0.0
        self.weight = 1.0
        self.schedule = Schedule()
        self.barriers: list[list[float]] = [[] for _ in range(6)]
        """When what was issued for each is done, in the order of issue."""
        self.of_copies = 0
        """The scoreboard barrier that groups of copies by threads (cp.async) set."""
        self.units: dict[str, float] = {}
        """When each is free."""
        self.copied = self.tensor = 0.0
        self.products: list[float] = []
        self.bulk: list[float] = []
        """When copies are there, those that a wait is for together."""
        self.is_told = True
        """Whether an mbarrier was told what to expect since the last copy: the next one is waited for by itself."""
        self.waited: set[tuple[str, int]] = set()
        """Lines of the source that have waited for an mbarrier."""
        self.spins = False
        sms = costs.schedulers
        self.latencies: Mapping[str, float] = {
            **OTHER_LATENCIES,
            **dict.fromkeys(("LDS", "LDSM", "ATOMS", "SYNCS"), costs.shared_latency),
            "SHFL": costs.shuffle_latency,
            "ATOMG": costs.atomic_latency,
            **dict.fromkeys(("MUFU", "F2I", "I2F", "F2F", "FRND", "FCHK"), costs.special_latency),
        }
        self.cycles = {**CYCLES, "xu": costs.special * sms, "double": costs.double * sms, "alu": costs.narrow * sms}

    def all(self) -> Schedule:
        """The whole program."""
        self.level(None, self.found.flow.loops)
        self.schedule.time = self.now
        return self.schedule

    def level(self, loop: Loop | None, loops: list[Loop]) -> None:
        """Once through the blocks of a loop, or of the program, and the loops among them."""
        flow, times = self.found.flow, self.found.times
        heads = {each.head: each for each in loops}
        around = times[loop.head] if loop is not None else self.part.share if self.part is not None else 1.0
        for block in sorted(loop.blocks) if loop is not None else range(len(flow.blocks)):
            if self.part is not None and block not in self.part.blocks:
                continue
            if block in heads:
                self.turn(heads[block])
            elif flow.within[block] is loop and times[block] >= around / 2:
                for i in flow.blocks[block]:
                    self.issue(self.found.instructions[i])

    def turn(self, loop: Loop) -> None:
        """A loop with all its turns."""
        turns = self.found.turns.get(loop.head, 1.0)
        outer, spun, ahead = self.weight, self.spins, max(1, len(self.bulk), len(self.barriers[self.of_copies]))
        self.spins = len(loop.blocks) <= SPINNING
        followed = min(max(FOLLOWED, 2 * ahead + 1), ceil(turns)) if turns >= 1 else SELDOM
        began = []
        for i in range(followed):
            part = turns - i if i == followed - 1 else 1.0
            part = part if turns >= 1 else turns / followed
            self.weight = outer * part
            began.append(self.now)
            self.level(loop, loop.loops)
        self.weight, self.spins = outer, spun
        ahead = min(ahead, followed)
        more = max(0.0, turns - followed) * (self.now - began[-ahead]) / ahead if began else 0.0
        if turns < 1:
            more = turns * (self.now - began[-1]) - (self.now - began[0])
        if not more:
            return
        self.now += more
        self.tensor += more
        self.copied += more
        self.barriers = [[time + more for time in times] for times in self.barriers]
        self.units = {name: time + more for name, time in self.units.items()}
        self.products = [time + more for time in self.products]
        self.bulk = [time + more for time in self.bulk]

    def issue(self, op: Instruction) -> None:
        """One instruction."""
        before = self.now
        for i in range(6):
            if op.awaits >> i & 1 and self.barriers[i]:
                self.now = max(self.now, *self.barriers[i])
                self.barriers[i] = []
        if op.never:
            self.now += max(1, op.stall)
            return
        cycles = self.cycles.get(op.pipe, 0.0) * op.takes * self.share
        pipe = op.pipe
        if op.name in ACCESSES:
            pipe, cycles = "l1", self.passes * op.words
        if cycles:
            self.now = max(self.now, self.units.get(pipe, 0.0))
            self.units[pipe] = self.now + cycles
        line = self.found.code.source_at[op.place]
        latency = self.latencies.get(op.name, 20.0)
        if op.name in ("LDG", "LDGSTS"):
            latency = self.of_memory.get(line, self.costs.dram_latency)
        done = self.now + latency
        self.special(op, done)
        if op.sets != NONE and op.sets < 6:
            if op.name == "LDGDEPBAR":
                self.of_copies, done = op.sets, self.copied
            self.barriers[op.sets].append(done)
        if op.frees != NONE and op.frees < 6:
            self.barriers[op.frees].append(self.now + READ)
        self.now += max(self.share, op.stall)
        self.schedule.lines[line] += (self.now - before) * self.weight

    def special(self, op: Instruction, done: float) -> None:
        """What an instruction does beside setting barriers."""
        if op.name == "LDGSTS":
            self.copied = max(self.copied, done)
        elif op.name == "DEPBAR":
            self.depbar(op)
        elif op.name == "BAR":
            self.now += self.costs.barrier_latency + self.costs.barrier_warp * self.warps
        elif op.name in ("HMMA", "IMMA", "DMMA"):
            self.now = max(self.now, self.tensor)
            self.tensor = self.now + self.matrix * self.share
        elif op.name in ("HGMMA", "IGMMA", "QGMMA"):
            self.tensor = max(self.now, self.tensor) + self.matrix * max(1.0, self.warps / GROUP)
            if op.ends_group:
                self.products.append(self.tensor + self.costs.product_latency)
        elif op.waits_for_products:
            ended = self.products[: len(self.products) - op.pending]
            self.now = max([self.now, *ended])
            del self.products[: len(ended)]
        elif op.name == "UTMALDG" and self.part is None:  # else another part waits for it
            there = self.now + self.costs.bulk_latency
            if self.is_told or not self.bulk:
                self.bulk.append(there)
            self.bulk[-1], self.is_told = there, False
        elif op.name == "SYNCS" and op.sets == NONE:
            self.is_told = True
        elif op.name == "SYNCS" and self.bulk:
            self.wait(op)

    def wait(self, op: Instruction) -> None:
        """Wait for the copies of an mbarrier. What tries again, in a loop of its own, waits for the same ones."""
        line = self.found.code.source_at[op.place]
        if self.spins and line in self.waited:
            return
        if not self.spins:
            self.waited.add(line)
        self.now = max(self.now, self.bulk.pop(0))

    def depbar(self, op: Instruction) -> None:
        """Wait until all but some of what was issued for a barrier is done."""
        barrier = op.low >> 44 & 7
        times = self.barriers[barrier] if barrier < 6 else []
        done = times[: len(times) - op.pending]
        self.now = max([self.now, *done])
        del times[: len(done)]
