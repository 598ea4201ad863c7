"""What a warp takes by the machine code, where there is some, in place of what operations are estimated to become."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.base import Span
from weft.explain.costs import Costs
from weft.explain.cycles import Walk
from weft.ir.lane import Block, LaneOp, LaneProgram

from .cubin import read
from .executed import Executed, executed
from .sass import decoded
from .schedule import ACCESSES, Schedule, scheduled
from .sides import shares

__all__ = ["Assembled", "assembled", "spilled_by_line"]

Latencies = Mapping[tuple[str, int], float]
"""Cycles by file and line."""
PRODUCTS = ("HMMA", "IMMA", "DMMA", "HGMMA", "IGMMA", "QGMMA")
SPILLS = ("STL", "LDL")


def spilled_by_line(image: bytes) -> dict[tuple[str, int], int]:
    """Words of a thread that the code of a cubin stores and loads for want of registers, by file and line."""
    code = read(image)
    found: Counter[tuple[str, int]] = Counter()
    if code is not None:
        for op in decoded(code.text):
            if op.name in SPILLS:
                found[code.source_at[op.place]] += op.words
    return dict(found)


def assembled(
    image: bytes,
    texts: Mapping[str, Any],
    program: LaneProgram,
    turns: Callable[[LaneOp], float],
    places: Mapping[Span | None, Counter[str]],
    warps: float,
) -> Assembled | None:
    """What a cubin, made of texts, makes of a walk through the lane program.

    None where that cannot be said: without line numbers, and where loops are not those of the lane program. `turns`
    says how often loops turn; `places` has counters of so many warps.
    """
    code = read(image)
    if code is None:
        return None
    of_lines = shares(str(texts.get("ptx", "")), program.body, places)
    body, turns_of = program.body, turns
    if program.programs_each > 1:  # a loop over programs, of which the counters have a turn for each
        loop = LaneOp("for", regions=(program.body,))
        body, turns_of = Block(ops=[loop]), lambda op: 1.0 if op is loop else turns(op)
    found = executed(code, body, turns_of, places, warps, of_lines)
    if found is None:
        return None
    counted = frozenset((span.file, span.line) for span in places if span is not None)
    return Assembled(found, program, counted)


@dataclass(frozen=True)
class Assembled:
    """Machine code and how often a warp executes its instructions; called, what it makes of a walk."""

    found: Executed
    program: LaneProgram
    counted: frozenset[tuple[str, int]]
    known: dict[object, Schedule] = field(default_factory=dict)

    @property
    def instructions(self) -> Mapping[tuple[str, int], float]:
        """How many a warp executes, by file and line."""
        lines: defaultdict[tuple[str, int], float] = defaultdict(float)
        for op, times in self.found.each():
            lines[self.found.code.source_at[op.place]] += times
        return lines

    def __call__(self, walk: Walk, costs: Costs, latencies: Latencies, passes: float) -> Walk:
        """The walk with what the machine code says, by the costs and latencies of memory."""
        return _as_assembled(self.found, walk, self.program, costs, latencies, passes, self.counted, self.known)


def _as_assembled(
    found: Executed,
    walk: Walk,
    program: LaneProgram,
    costs: Costs,
    latencies: Latencies,
    passes: float,
    counted: frozenset[tuple[str, int]],
    known: dict[object, Schedule],
) -> Walk:
    """The walk with what machine code says of instructions, units and time, by lines that were counted; `known` keeps
    schedules."""
    pipes: defaultdict[str, float] = defaultdict(float)
    products = slots = spilled = accesses = 0.0
    for op, times in found.each():
        slots += times
        pipes[op.pipe] += times * op.takes
        products += times * (op.name in PRODUCTS)
        spilled += times * op.words * (op.name in SPILLS)
        accesses += times * op.words * (op.name in ACCESSES)
    matrix = walk.pipes["tensor"] * costs.schedulers / products if products else 0.0
    each = passes / accesses if accesses else 0.0
    key = costs.clock, tuple(latencies.items()), matrix, each
    schedule = known.get(key) or known.setdefault(key, scheduled(found, costs, latencies, program.warps, matrix, each))
    units = {
        "narrow": pipes["alu"] * costs.narrow,
        "floats": max(pipes["heavy"], (pipes["heavy"] + pipes["fma"]) / 2) * costs.narrow,
        "special": pipes["xu"] * costs.special,
        "double": pipes["double"] * costs.double,
    }
    lines: defaultdict[Span | None, float] = defaultdict(float)
    for (file, line), cycles in schedule.lines.items():
        if (file, line) in counted:  # what comes before the first operation is left out
            lines[Span(file, line, 0)] += cycles
    all_pipes = defaultdict(float, {**walk.pipes, **units})
    return replace(
        walk, time=schedule.time, groups=schedule.groups, slots=slots, pipes=all_pipes, lines=lines, spilled=spilled
    )
