"""The time of a launch, predicted: what each resource of the machine is asked for, by its rate, and who waits for what.

    time = launch + the largest of { memory, caches, issue, matrix units, ..., latency } + what those add to each other

A resource's time is all that the grid asks of it, by the rate of the whole machine; where there are few programs, by
what the fullest multiprocessor has. `latency` is the time of a warp alone (cycles.py) times the rounds in which blocks
follow each other on a multiprocessor: however fast the machine is, a program takes as long as its own chain.

Bytes of DRAM are what programs touch, but of an array no more than it has, as far as it stays in the L2 cache between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from math import ceil, prod

from weft.base import Span
from weft.ir.lane import LaneOp, LaneProgram
from weft.targets.table import instruction

from .conflicts import conflicts_of
from .costs import Costs, costs_of
from .cycles import Walk, walked
from .findings import Facts
from .record import Time, line_key
from .unknown import with_unknown

__all__ = ["time_of"]

TOGETHER = 3
"""The power of the mean in which resources are combined: two that take the same time take 1.26 of it."""
SECTOR = 32
FEW_WAVES = 3


def time_of(facts: Facts, sizes: Mapping[str, int]) -> Time | None:
    """The time of a launch; None for a machine that is not calibrated, and where nothing was counted.

    `sizes` are the bytes of the arrays among the arguments, as far as they are known.
    """
    program, e = facts.program, facts.explanation
    costs = costs_of(program.machine) if program is not None else None
    if program is None or costs is None or not e.counts.counted or e.occupancy is None:
        return None
    low, resources, walk = _predicted(with_unknown(facts, spread=False), program, costs, sizes, least=True)
    high, _, _ = _predicted(with_unknown(facts, spread=True), program, costs, sizes, least=False)
    bound = max(resources, key=lambda name: resources[name], default="launch")
    middle = (low + high) / 2
    total = sum(walk.lines.values())
    lines: defaultdict[tuple[str, int], float] = defaultdict(float)
    for span, cycles in walk.lines.items():
        if span is not None:
            lines[span.file, span.line] += cycles
    return Time(
        round(middle / 1000, 2),
        round(low * costs.uncertainty[0] / 1000, 2),
        round(high * costs.uncertainty[1] / 1000, 2),
        bound,
        round(resources.get(bound, costs.launch) / middle, 3),
        {name: round(ns / 1000, 3) for name, ns in sorted(resources.items(), key=lambda item: -item[1])},
        {line_key(e, *line): round(cycles / total, 4) for line, cycles in sorted(lines.items())} if total else {},
        tuple(walk.iterations),
    )


def _predicted(
    facts: Facts, program: LaneProgram, costs: Costs, sizes: Mapping[str, int], least: bool
) -> tuple[float, dict[str, float], Walk]:
    """Nanoseconds, those of each resource, and the walk; with the least that DRAM may have to do, or the most."""
    moved = _bytes_of_dram(facts, sizes, costs)[0 if least else 1]
    touched = float(SECTOR * sum(_distinct(p, verb) for p in facts.places.values() for verb in ("load", "store")))
    latency = _mixed(costs, moved / touched if touched else 1.0)
    walk = walked(program, costs, _iterations(facts), lambda op: latency)
    resources = _resources(facts, program, costs, walk, moved, touched)
    return _together(resources, costs), resources, walk


def _together(resources: Mapping[str, float], costs: Costs) -> float:
    """Nanoseconds of a launch of which resources take so many."""
    waits = costs.dram_latency / costs.clock
    together: float = sum(ns**TOGETHER for ns in resources.values()) ** (1 / TOGETHER)
    return costs.launch + waits + together


def _mixed(costs: Costs, from_dram: float) -> float:
    """The latency of loads of which a part comes from DRAM."""
    part = min(1.0, from_dram)
    return costs.l2_latency + part * (costs.dram_latency - costs.l2_latency)


def _resources(
    facts: Facts, program: LaneProgram, costs: Costs, walk: Walk, moved: float, touched: float
) -> dict[str, float]:
    """Nanoseconds by resource."""
    e, o = facts.explanation, facts.explanation.occupancy
    assert o is not None
    blocks = prod(e.grid) * program.blocks
    units = program.machine.multiprocessors
    full = ceil(blocks / units) if blocks < units * o.blocks * FEW_WAVES else blocks / units
    warps = program.warps * full
    shared = walk.pipes["shared"] + _conflicts(facts) / max(1, blocks * program.warps)
    sectors = _passes_of_sectors(facts, costs) / units * (full * units / blocks)
    cycles = {
        "issue": walk.slots * warps / costs.schedulers,
        "matrix units": walk.pipes["tensor"] * warps,
        "special functions": walk.pipes["special"] * warps,
        "double precision": walk.pipes["double"] * warps,
        "shared memory": shared * warps,
        "L1": max(walk.pipes["l1"] * warps, sectors) + shared * warps,
        "latency": walk.time * _rounds(blocks, units * o.blocks),
        "L2": touched / costs.l2,
    }
    slowest = max(cycles["latency"], cycles["issue"], moved / costs.dram * costs.clock)
    duty = min(1.0, cycles["matrix units"] / max(slowest, cycles["matrix units"], 1.0))
    clock = costs.clock - duty * (costs.clock - costs.busy_clock)
    times = {name: n / clock for name, n in cycles.items() if n}
    return {**times, "DRAM": moved / costs.dram} if moved else times


def _rounds(blocks: int, at_a_time: int) -> float:
    """How often blocks follow each other: whole rounds where there are few; where there are many, parts of one too."""
    waves = blocks / at_a_time
    return float(ceil(waves)) if waves < FEW_WAVES else waves


def _conflicts(facts: Facts) -> float:
    """Wavefronts of the grid that bank conflicts add."""
    return float(sum(lost for _, lost in conflicts_of(facts.explanation)))


def _passes_of_sectors(facts: Facts, costs: Costs) -> float:
    """Cycles of the L1 cache for the sectors of the grid: a line of four at a time, one where lanes are far apart."""
    cycles = 0.0
    for counts in facts.places.values():
        for verb in ("load", "store"):
            sectors, bytes = counts[f"global_{verb}_sectors"], counts[f"global_{verb}_bytes"]
            apart = sectors > 1.5 * bytes / SECTOR
            cycles += sectors if apart else sectors * SECTOR / costs.line
    return cycles


def _bytes_of_dram(facts: Facts, sizes: Mapping[str, int], costs: Costs) -> tuple[float, float]:
    """Bytes that go to or come from DRAM, and at most where a size is not known."""
    touched: defaultdict[tuple[str, str], float] = defaultdict(float)
    for span, (verb, names) in _arrays(facts).items():
        bytes = float(SECTOR * _distinct(facts.places.get(span, Counter()), verb))
        for name in names:
            touched[name, verb] += bytes / len(names)
    moved = most = 0.0
    for (name, _), bytes in touched.items():
        size = sizes.get(name)
        if size is None:
            moved, most = moved + bytes / REUSED, most + bytes
            continue
        bytes = min(bytes, _again(facts, bytes, size, costs))
        moved, most = moved + bytes, most + bytes
    return moved, most


def _again(facts: Facts, bytes: float, size: int, costs: Costs) -> float:
    """What DRAM gives of so many bytes that are asked of an array: all of it once, if it stays in the L2 cache.

    Of a larger array all is given that is asked for, if the programs that run at a time ask for more than the cache
    holds, as where each goes over its part several times; but not where many programs ask for the same.
    """
    e, o = facts.explanation, facts.explanation.occupancy
    if size <= costs.l2_bytes or o is None:
        return size
    at_a_time = min(1.0, o.blocks * o.multiprocessors / max(1, e.counts.programs))
    if bytes * at_a_time > costs.l2_bytes and bytes <= PASSES * size:
        return bytes
    return max(size, bytes / REUSED)


PASSES = 4
"""How often a program goes over its part of an array; what is asked for more often, several programs ask for."""
REUSED = 8
"""How often what is read again of an array that is larger than the L2 cache is found there: blocks that run at a time
read the same rows."""


def _arrays(facts: Facts) -> dict[Span | None, tuple[str, list[str]]]:
    """The arrays that are accessed at each place."""
    program = facts.program
    assert program is not None
    names = {value: p.name for value, p in zip(program.body.arguments, program.parameters, strict=True)}
    found: dict[Span | None, tuple[str, list[str]]] = {}
    for op in facts.ops:
        verb = _verb(op)
        if not verb:
            continue
        address = op.operands[1] if op.name == "copy_async" else op.operands[0]
        operands = op.operands if op.name == "instruction" else (address,)
        made = {v for operand in operands for v in facts.made_from(operand)}
        there = sorted(name for value, name in names.items() if value in made and _is_array(program, name))
        known = found.setdefault(op.span, (verb, []))[1]
        known.extend(name for name in there if name not in known)
    return found


def _distinct(counts: Counter[str], verb: str) -> int:
    """Sectors that go beyond the L1 cache: of an access of several registers, those that differ."""
    sectors, distinct = counts[f"global_{verb}_sectors"], counts[f"global_{verb}_distinct"]
    return min(sectors, distinct) if distinct else sectors


def _is_array(program: LaneProgram, name: str) -> bool:
    return any(p.name == name and p.elem in ("ptr", "tensormap") for p in program.parameters)


def _verb(op: LaneOp) -> str:
    if op.name in ("load", "store") and op.attrs["space"] == "global":
        return op.name
    if op.name == "copy_async":
        return "load"
    if op.name == "instruction":
        entry = instruction(op.attrs["isa"])
        if entry.touches == "bulk" and any(operand.name == "map" for operand in entry.operands):
            return "store" if entry.stores else "load"
    return ""


def _iterations(facts: Facts) -> Callable[[LaneOp], float]:
    """How often a loop turns each time that it is entered, of what the counter found at its place."""
    program, e = facts.program, facts.explanation
    assert program is not None
    warps = max(1, e.counts.programs * program.blocks * program.warps)
    same = Counter((op.span, op.name) for op in facts.loops)
    outer: dict[int, LaneOp] = {}
    for loop in facts.loops:
        for region in loop.regions:
            outer.update({id(op): loop for op in region.walk() if op.name in ("for", "while") and id(op) != id(loop)})

    def all_turns(op: LaneOp) -> float:
        counts: Mapping[str, int] = facts.places.get(op.span, {})
        return counts.get(f"kind:{op.name}", 0) / warps / same[op.span, op.name]

    def turns(op: LaneOp) -> float:
        entered = all_turns(outer[id(op)]) if id(op) in outer else 1.0
        return all_turns(op) / entered if entered else 0.0

    return turns
