"""What one warp of a program takes, in cycles: its operations in order, each when its operands are there.

    load 16 bytes     issued at 0, there after the latency of memory
    multiply          waits for it
    store             issued when the product is there

A warp issues in order and waits at the first use of what is not there yet, which is what a GPU does; ptxas moves
instructions, but the lane program has loads before their uses already (decision 35). Operations that LLVM folds into
others (constants, names of registers, places of lanes) take nothing. Of a loop three iterations are followed: the
difference of the last two is the time of an iteration, in which what was copied ahead is there. How often it turns is
what the counter found.

Beside the time, a walk adds up what the warp asks of each pipe of its multiprocessor, which all warps share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from weft.base import Span
from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, LaneProgram, Value
from weft.targets.table import instruction

from .costs import Costs
from .record import Iteration
from .timeline import Moment, Timeline

__all__ = ["Walk", "walked"]

FREE = frozenset(
    (
        *("constant", "linear", "rename", "join", "undefined", "zero", "keep", "program_id", "num_programs", "shared"),
        *("remote", "scratch", "commit_async", "yield", "return", "condition", "fence", "elect"),
    )
)
FOLLOWED = 3
GROUP = 4
"""Warps that give a matrix unit a product together, where products are awaited."""


@dataclass
class Walk:
    """What was found; `pipes` has cycles of a multiprocessor for each warp."""

    time: float = 0.0
    slots: float = 0.0
    pipes: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    lines: defaultdict[Span | None, float] = field(default_factory=lambda: defaultdict(float))
    """Cycles by place."""
    groups: float | None = None
    """How many groups of warps of a block go their own ways, if the time is that of one group with what all of its
    warps ask of units, as it is by machine code."""
    spilled: float | None = None
    """Words that a lane stores and loads for want of registers, where machine code says so."""
    iterations: list[Iteration] = field(default_factory=list)
    """One of each loop without further loops in it."""


Latency = Callable[[LaneOp], float]


def walked(program: LaneProgram, costs: Costs, iterations: Callable[[LaneOp], float], latency: Latency) -> Walk:
    """A walk through a program; `iterations` says how often a loop turns, `latency` how long a load takes."""
    walker = _Walker(program, costs, iterations, latency)
    walker.block(program.body)
    walker.walk.time = walker.now
    return walker.walk


class _Walker:
    def __init__(
        self,
        program: LaneProgram,
        costs: Costs,
        iterations: Callable[[LaneOp], float],
        latency: Callable[[LaneOp], float],
    ) -> None:
        self.program, self.costs, self.iterations, self.latency = program, costs, iterations, latency
        self.walk = Walk()
        self.now = 0.0
        self.weight = 1.0
        self.ready: dict[Value, float] = {}
        self.copies: list[float] = []
        """When the copies of each group that was committed are there; the last one is open."""
        self.open_copy = 0.0
        self.bulk: list[float] = []
        self.products: list[float] = []
        self.tensor = 0.0
        """When the matrix unit has done all that it was given."""
        self.timeline: Timeline | None = None
        """Of the iteration that is walked through, if it is to be put down."""

    def block(self, block: Block) -> list[float]:
        """All operations of a region; when what it hands on is there."""
        for op in block.ops:
            before = self.now
            if self.timeline is None or op.regions:
                self.op(op)
            else:
                moment, there = self.moment(), max((self.at(v) for v in op.operands), default=0.0)
                self.op(op)
                ready = max((self.at(v) for v in op.results), default=0.0)
                self.timeline.add(op, moment, there, self.moment(), ready)
            if not op.regions:  # theirs are those of what is in them
                self.walk.lines[op.span] += (self.now - before) * self.weight
        last = block.ops[-1] if block.ops else None
        return [self.at(v) for v in last.operands] if last is not None and last.name in ("yield", "condition") else []

    def moment(self) -> Moment:
        """What is known now, for a time line."""
        return Moment(self.now, self.tensor, self.open_copy, tuple(self.bulk), self.walk.pipes["tensor"])

    def at(self, value: Value) -> float:
        return self.ready.get(value, 0.0)

    def op(self, op: LaneOp) -> None:
        there = max((self.at(v) for v in op.operands), default=0.0)
        if op.name in FREE:
            if op.name == "commit_async":
                self.copies.append(self.open_copy)
            self._gives(op, there)
            return
        if op.name in ("for", "while"):
            self._loop(op)
            return
        handler = getattr(self, f"_{op.name}", None)
        if op.regions:
            self._regions(op)
        elif handler is not None:
            self.now = max(self.now, there)
            handler(op)
        else:
            self.now = max(self.now, there)
            self._computes(op)

    def _gives(self, op: LaneOp, time: float) -> None:
        for value in op.results:
            self.ready[value] = time

    def _issue(self, slots: float, pipe: str = "", cycles: float = 0.0) -> None:
        """Instructions that the warp issues, one a cycle, and what they take of a pipe that it has for itself here."""
        self.walk.slots += slots * self.weight
        if pipe:
            self.walk.pipes[pipe] += cycles * self.weight
        self.now += max(slots, cycles)

    # -- control flow ----------------------------------------------------------------------------------------------

    def _loop(self, op: LaneOp) -> None:
        turns = self.iterations(op)
        carried = [self.at(v) for v in (op.operands[3:] if op.name == "for" else op.operands)]
        outer, last, results = self.weight, 0.0, carried
        is_innermost = not any(each.name in ("for", "while") for region in op.regions for each in region.walk())
        for i in range(min(FOLLOWED, ceil(turns))):
            self.weight = outer * (1.0 if i < FOLLOWED - 1 else turns - i) if turns > i + 1 else outer * (turns - i)
            body = op.regions[0]
            arguments = body.arguments[1:] if op.name == "for" else body.arguments
            for value, time in zip(arguments, results, strict=False):
                self.ready[value] = time
            before = self.now
            if is_innermost and i == min(FOLLOWED, ceil(turns)) - 1:
                self.timeline = Timeline(before)
            self._issue(2)
            results = self.block(body)
            for region in op.regions[1:]:
                for value, time in zip(region.arguments, results[1:], strict=False):
                    self.ready[value] = time
                results = self.block(region)
            last = self.now - before
        if self.timeline is not None and is_innermost:
            self.walk.iterations.append(self.timeline.iteration(op, last, turns))
            self.timeline = None
        self.weight = outer
        more = max(0.0, turns - FOLLOWED) * last
        self.now += more
        self.tensor += more
        self.copies = [time + more for time in self.copies]
        self.products = [time + more for time in self.products]
        self.bulk = [time + more for time in self.bulk]
        values = results[1:] if op.name == "while" and len(results) > len(op.results) else results
        for value, time in zip(op.results, values, strict=False):
            self.ready[value] = time + more

    def _regions(self, op: LaneOp) -> None:
        """A branch as if its first way were taken; of partitions the slowest, each with its share of the warps."""
        start, end = self.now, self.now
        outer = self.weight
        partitions = op.name == "partitions"
        for i, region in enumerate(op.regions if partitions else op.regions[:1]):
            self.now = start
            if partitions:
                self.weight = outer * op.attrs["warps"][i] / self.program.warps
            results = self.block(region)
            end = max(end, self.now)
            for value, time in zip(op.results, results, strict=False):
                self.ready[value] = time
        self.weight, self.now = outer, end

    # -- arithmetic ------------------------------------------------------------------------------------------------

    def _computes(self, op: LaneOp) -> None:
        """An operation on each register."""
        values = (*op.results, *op.operands)
        count = max((v.count for v in values), default=1)
        work = self.costs.work(op)
        pipes, costs = self.walk.pipes, self.costs
        pipes["special"] += count * work.special * costs.special * self.weight
        pipes["narrow"] += count * work.narrow * costs.narrow * self.weight
        if (op.results[0].elem if op.results else op.operands[0].elem) == "f64":
            pipes["double"] += count * costs.double * self.weight
        alone = work.special * costs.special * costs.schedulers / 4  # of one warp on its own scheduler
        self._issue(count * max(work.slots, alone))
        self.walk.slots += count * min(0.0, work.slots - alone) * self.weight
        self._gives(op, self.now + (costs.special_latency if work.special else costs.alu_latency))

    # -- memory ----------------------------------------------------------------------------------------------------

    def _access(self, op: LaneOp, value: Value) -> tuple[float, float]:
        """Instructions of an access, and passes over shared memory that they take without conflicts."""
        vector = int(op.attrs.get("vector", 1))
        bytes = max(1, ELEMENT_BITS.get(value.elem, 32) // 8) * vector
        count = max(1.0, value.count / vector)
        return count, count * max(1.0, bytes * self.program.lanes / self.costs.line)

    def _load(self, op: LaneOp) -> None:
        count, passes = self._access(op, op.results[0])
        if op.attrs["space"] == "global":
            self._issue(count, "l1", passes)
            self._gives(op, self.now + self.latency(op))
        else:
            self._issue(count, "shared", passes)
            self._gives(op, self.now + self.costs.shared_latency)

    def _store(self, op: LaneOp) -> None:
        count, passes = self._access(op, op.operands[1])
        self._issue(count, "l1" if op.attrs["space"] == "global" else "shared", passes)

    def _atomic(self, op: LaneOp) -> None:
        self._issue(max(1.0, op.operands[0].count), "l1", max(1.0, op.operands[0].count))
        self._gives(op, self.now + self.costs.atomic_latency)

    _compare_and_swap = _atomic

    def _copy_async(self, op: LaneOp) -> None:
        count = max(v.count for v in op.operands)
        self._issue(count, "shared", count * max(1.0, op.attrs["bytes"] * self.program.lanes / self.costs.line))
        self.open_copy = self.now + self.latency(op)

    def _wait_async(self, op: LaneOp) -> None:
        done = self.copies[: len(self.copies) - int(op.attrs["pending"])]
        self.now = max(self.now, *done, self.now + 1)
        del self.copies[: len(done)]

    def _shuffle(self, op: LaneOp) -> None:
        count = op.results[0].count * max(1, ELEMENT_BITS[op.results[0].elem] // 32)
        self._issue(count, "shared", count)
        self.walk.pipes["shuffles"] += count * self.weight
        self._gives(op, self.now + self.costs.shuffle_latency)

    def _barrier(self, op: LaneOp) -> None:
        self._issue(1)
        self.now += self.costs.barrier_latency + self.costs.barrier_warp * self.program.warps

    # -- instructions of the machine -------------------------------------------------------------------------------

    def _instruction(self, op: LaneOp) -> None:
        use = self.costs.instruction(op, _times(op))
        if use.when == "later":
            self.tensor = max(self.now, self.tensor) + use.latency * max(1.0, self.program.warps / GROUP)
        elif use.when == "commit":
            self.products.append(self.tensor + self.costs.product_latency)
        elif use.when == "copy":
            self.bulk.append(self.now + self.costs.bulk_latency)
        elif use.when == "arrival" and self.bulk:
            self.now = max(self.now, self.bulk.pop(0))
        is_matrix = use.pipe == "tensor"  # which works beside the warp
        self._issue(use.slots, "" if is_matrix else use.pipe, 0.0 if is_matrix else use.cycles)
        if is_matrix:
            self.walk.pipes["tensor"] += use.cycles * self.weight
        # nobody uses what is done later before it is awaited
        self._gives(op, self.now if use.when == "later" else self.now + use.latency)

    def _await(self, op: LaneOp) -> None:
        pending = int(op.attrs["pending"])
        done = self.products[: len(self.products) - pending]
        self.now = max([self.now, *done])
        del self.products[: len(done)]
        self._gives(op, self.now)


def _times(op: LaneOp) -> int:
    """How many of an instruction an operation is: its registers by those of one."""
    entry = instruction(op.attrs["isa"])
    pairs = (*zip(op.operands, entry.operands, strict=False), *zip(op.results, entry.results, strict=False))
    return max((value.count // operand.count for value, operand in pairs if operand.count), default=1) or 1
