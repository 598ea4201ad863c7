"""The time of a launch, predicted: what each resource of the machine is asked for, by its rate, and who waits for what.

    time = launch + the largest of { memory, caches, issue, matrix units, ..., latency } + what those add to each other

A resource's time is all that the grid asks of it, by the rate of the whole machine; where there are few programs, by
what the fullest multiprocessor has. `latency` is the time of a warp alone (cycles.py) times the rounds in which blocks
follow each other on a multiprocessor: however fast the machine is, a program takes as long as its own chain.

Bytes of DRAM are what programs touch, but of an array no more than it has, as far as it stays in the L2 cache between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, exp, inf, prod
from typing import Any

from weft.base import Span
from weft.base.grids import blocks_along_x
from weft.ir.lane import LaneOp, LaneProgram, Value
from weft.machines import part

from .arrays import arrays_of
from .costs import Costs, costs_of, devices_of
from .cycles import Walk, walked
from .findings import Facts
from .record import Time, line_key
from .together import OWN, Taken, edge, together
from .unknown import with_unknown

__all__ = ["time_of", "with_code"]

SECTOR = 32
FEW_WAVES = 3
LEAST, TYPICAL, MOST = range(3)
"""How much DRAM has to do, where that is not known."""


def time_of(facts: Facts, sizes: Mapping[str, int]) -> Time | None:
    """The time of a launch; None for a machine that is not calibrated, and where nothing was counted.

    `sizes` are the bytes of the arrays among the arguments, as far as they are known.
    """
    program, e = facts.program, facts.explanation
    costs = costs_of(program.machine, facts.device) if program is not None else None
    if program is None or costs is None or not e.counts.counted or e.occupancy is None:
        return None
    random, ordered = with_unknown(facts, spread=True), with_unknown(facts, spread=False)
    taken, walk, moved = _predicted(random, program, costs, sizes, TYPICAL)
    resources, fixed = taken.resources, costs.launch + costs.dram_latency / costs.clock
    middle = fixed + together(taken)
    low = min(edge(t, fixed, costs, 0) for t in (taken, _predicted(ordered, program, costs, sizes, LEAST)[0]))
    high = max(edge(t, fixed, costs, 1) for t in (taken, _predicted(random, program, costs, sizes, MOST)[0]))
    bound = _bound(resources, middle, costs, _mean_part(facts, program))
    total = sum(walk.lines.values())
    lines: defaultdict[tuple[str, int], float] = defaultdict(float)
    for span, cycles in walk.lines.items():
        if span is not None:
            lines[span.file, span.line] += cycles
    return Time(
        round(middle / 1000, 2),
        round(low / 1000, 2),
        round(high / 1000, 2),
        bound,
        round(resources.get(bound, costs.launch) / middle, 3),
        {name: round(ns / 1000, 3) for name, ns in sorted(resources.items(), key=lambda item: -item[1])},
        {line_key(e, *line): round(cycles / total, 4) for line, cycles in sorted(lines.items())} if total else {},
        tuple(walk.iterations),
        facts.device or next(iter(devices_of(program.machine))),
        moved.bytes,
        _utilisation(taken, moved, fixed, costs, _mean_part(facts, program)),
        taken.resident if taken.resident < inf else 0.0,
    )


def _bound(resources: Mapping[str, float], all: float, costs: Costs, mean: float) -> str:
    """What bounds a launch, by the rule of Nsight Compute: the resource that is busy for the most of the time, if that
    is BUSY of it; otherwise programs wait for themselves, or for the launch."""
    busy = {name: ns * (mean if name in OWN else 1.0) for name, ns in resources.items() if name != "latency"}
    most = max(busy, key=lambda name: busy[name], default="")
    if most and busy[most] >= BUSY * all:
        return most
    return "latency" if max([*busy.values(), resources.get("latency", 0.0)]) >= costs.launch / 2 else "launch"


BUSY = 0.6
"""The part of the time for which a resource is busy that bounds a launch."""


def _mean_part(facts: Facts, program: LaneProgram) -> float:
    """What a multiprocessor has to do as a mean, by what the fullest one has."""
    blocks, units = prod(facts.explanation.grid) * program.blocks, program.machine.multiprocessors
    return blocks / units / _fullest(facts, program)


def _fullest(facts: Facts, program: LaneProgram) -> float:
    """The blocks of the multiprocessor that has the most of them; where there are many, all have the same."""
    o = facts.explanation.occupancy
    assert o is not None
    blocks, units = prod(facts.explanation.grid) * program.blocks, program.machine.multiprocessors
    return float(ceil(blocks / units)) if blocks < units * o.blocks * FEW_WAVES else blocks / units


def _utilisation(taken: Taken, moved: Moved, fixed: float, costs: Costs, mean: float) -> dict[str, float]:
    """The parts of peaks that a profiler shows, which empties caches first."""
    clean = replace(moved, written=max(0.0, moved.written - costs.left), has_others=False)
    alone = replace(taken, resources={**taken.resources, "DRAM": clean.nanoseconds(costs)})
    all = fixed + costs.profiled + together(alone)
    used = {name: ns * (mean if name in OWN else 1.0) / all for name, ns in taken.resources.items()}
    used["DRAM"] = clean.bytes / costs.dram_peak / all
    return {name: round(part, 3) for name, part in used.items() if part >= 0.005}


def _predicted(
    facts: Facts, program: LaneProgram, costs: Costs, sizes: Mapping[str, int], how: int
) -> tuple[Taken, Walk, Moved]:
    """What is taken, in nanoseconds, the walk, and what DRAM moves; with the least that it may have to do, or more.

    Copies by threads take longer while the L2 cache is busy, so the time is computed twice: first with the latency of
    an idle cache, which tells how busy the cache is; then with a latency that this raises, up to
    `Machine.copy_latency`.
    """
    moved = _dram(facts, sizes, costs)[how]
    first = _first_wave(facts)
    latencies = {
        span: _mixed(costs, max((moved.parts.get(name, 1.0) for name in names), default=1.0), first)
        for (span, verb), names in arrays_of(facts).items()
        if verb == "load"
    }
    taken, walk = _taken(facts, program, costs, sizes, moved, latencies)
    copied = latencies.keys() & {op.span for op in facts.ops if op.name == "copy_async"}
    if copied:
        busy = min(1.0, taken.resources.get("L2", 0.0) / together(taken))
        more = busy**QUEUE * (program.machine.copy_latency - costs.l2_latency)
        latencies.update((span, latencies[span] + more) for span in copied)
        taken, walk = _taken(facts, program, costs, sizes, moved, latencies)
    return taken, walk, moved


QUEUE = 2
"""The latency of copies rises with this power of the part of the time for which the L2 cache is busy, so hardly at all
for small parts. In a product by blocks of 64x64x32, which takes 413 us on an H200, it is busy for 0.8 of the time."""


def _taken(
    facts: Facts,
    program: LaneProgram,
    costs: Costs,
    sizes: Mapping[str, int],
    moved: Moved,
    latencies: Mapping[Span | None, float],
) -> tuple[Taken, Walk]:
    """What is taken, and the walk, with these latencies of loads at their places."""
    walk = walked(program, costs, _iterations(facts), lambda op: latencies.get(op.span, costs.dram_latency))
    if facts.assembled is not None:
        by_line: dict[tuple[str, int], float] = {}
        for span, latency in latencies.items():
            if span is not None:
                by_line[span.file, span.line] = max(latency, by_line.get((span.file, span.line), 0.0))
        all_warps = max(1, prod(facts.explanation.grid) * program.blocks * program.warps)
        passes = _passes_of_shared(facts, walk, all_warps)
        passes += max(walk.pipes["l1"], _passes_of_sectors(facts, costs) / all_warps)
        walk = facts.assembled(walk, costs, by_line, passes)
    resources = _resources(facts, program, costs, sizes, walk, moved)
    return Taken(resources, _resident(facts, program, walk)), walk


def _resident(facts: Facts, program: LaneProgram, walk: Walk) -> float:
    """The blocks of a multiprocessor at a time, or groups of their warps, if the walk has what one asks of units."""
    o = facts.explanation.occupancy
    if walk.groups is None or o is None:
        return inf
    blocks = prod(facts.explanation.grid) * program.blocks
    return max(1, min(o.blocks, ceil(blocks / program.machine.multiprocessors))) * walk.groups


def with_code(facts: Facts, image: bytes, texts: Mapping[str, Any]) -> Facts:
    """The facts with what the machine code of the program says, where there is some, and its machine's is known."""
    program, e = facts.program, facts.explanation
    if program is None or not image or not e.counts.counted or costs_of(program.machine) is None:
        return facts
    warps = max(1, e.counts.programs * program.blocks * program.warps)
    own = part("explain", program.machine)
    return replace(facts, assembled=own.assembled(image, texts, program, _iterations(facts), facts.places, warps))


def _first_wave(facts: Facts) -> float:
    """The part of the programs that are in the first wave: they ask at about the same time for what they share, so that
    all of them wait for DRAM, which only later ones find in the L2 cache."""
    o = facts.explanation.occupancy
    return 1.0 / max(1.0, o.waves) if o is not None else 1.0


def _mixed(costs: Costs, from_dram: float, first: float) -> float:
    """The latency of loads of which a part comes from DRAM, by a part of programs that is in the first wave."""
    part = min(1.0, from_dram)
    part += (1.0 - part) * first
    return costs.l2_latency + part * (costs.dram_latency - costs.l2_latency)


def _resources(
    facts: Facts, program: LaneProgram, costs: Costs, sizes: Mapping[str, int], walk: Walk, moved: Moved
) -> dict[str, float]:
    """Nanoseconds by resource."""
    e, o = facts.explanation, facts.explanation.occupancy
    assert o is not None
    blocks = prod(e.grid) * program.blocks
    units = program.machine.multiprocessors
    full = _fullest(facts, program)
    warps = program.warps * full
    passes = _passes_of_shared(facts, walk, blocks * program.warps) * warps
    sectors = _passes_of_sectors(facts, costs) / units * (full * units / blocks)
    more = _spilled(facts, costs) if walk.spilled is None else 0.0
    spilled = more if walk.spilled is None else walk.spilled * costs.spilled * bool(o.spills)
    l1 = max(walk.pipes["l1"] * warps, sectors) + spilled * warps
    cycles = {
        "issue": walk.slots * warps / costs.schedulers,
        "matrix units": walk.pipes["tensor"] * warps,
        "special functions": walk.pipes["special"] * warps,
        "integers and choices": walk.pipes["narrow"] * warps,
        "floats": walk.pipes["floats"] * warps,
        "double precision": walk.pipes["double"] * warps,
        "shared memory" if passes > l1 else "L1": l1 + passes,  # one unit does both
        "latency": (walk.time + more) * _rounds(blocks, units * o.blocks, e.counts.longest),
        "L2": _through_l2(facts) / costs.l2,
    }
    clock = _clock(cycles, _resident(facts, program, walk), costs)
    times = {name: n / clock for name, n in cycles.items() if n}
    fixed = {
        "DRAM": moved.nanoseconds(costs),
        "starting blocks": _started(program, e.grid, units * o.blocks) * costs.block_start,
        "atomics": _atomics(facts, sizes, costs),
    }
    return {**times, **{name: ns for name, ns in fixed.items() if ns}}


def _started(program: LaneProgram, grid: Sequence[int], at_a_time: int) -> int:
    """How many blocks a launch starts, if so many run at a time."""
    _, y, z = grid
    return blocks_along_x(grid, program.programs_each, at_a_time) * y * z * program.blocks


def _spilled(facts: Facts, costs: Costs) -> float:
    """Cycles of the L1 cache, for each warp, for words that registers do not hold: each is a line of the warp's own,
    which is stored and loaded in every turn of the loop that turns the most."""
    e, program = facts.explanation, facts.program
    assert e.occupancy is not None and program is not None
    warps = max(1, e.counts.programs * program.blocks * program.warps)
    counted = (facts.places.get(op.span, Counter())[f"kind:{op.counted_as}"] for op in facts.loops)
    turns = max((count / warps for count in counted), default=1.0)
    return (e.occupancy.spills or 0) * max(1.0, turns) * 2 * LINE * SECTOR / costs.line


def _through_l2(facts: Facts) -> float:
    """Bytes that the L2 cache is asked for; a sector from anywhere takes as long as a line, and so does a short row of
    a box: products of 64x64x32 and 128x128x32, whose rows have 64 bytes, take 428 and 204 us on an H200."""
    bytes = 0.0
    for place, counts in facts.places.items():
        for verb in ("load", "store"):
            each = float(SECTOR * _distinct(counts, verb))
            is_scattered = (place, verb) in facts.unknown and each > APART * counts[f"global_{verb}_bytes"]
            bytes += each * LINE if is_scattered else each
            if lines := counts[f"global_{verb}_lines_of_boxes"]:
                bytes += SECTOR * LINE * lines - counts[f"global_{verb}_boxes"]
    return bytes


def _clock(cycles: Mapping[str, float], resident: float, costs: Costs) -> float:
    """Cycles of a nanosecond, by how busy matrix units are."""
    matrix = cycles["matrix units"]
    if not matrix:
        return costs.clock
    duty = matrix / together(Taken(cycles, resident))
    first, last = costs.busy
    part = max(0.0, min(1.0, (duty - first) / (last - first)))
    return costs.matrix_clock - part * (costs.matrix_clock - costs.busy_clock)


def _atomics(facts: Facts, sizes: Mapping[str, int], costs: Costs) -> float:
    """Nanoseconds of atomic operations: lines that they reach, one after the other in each part of the L2 cache; of a
    small array, which is in few of them, much longer. And of boxes that the copy engine combines with memory."""
    program, total = facts.program, 0.0
    assert program is not None
    ops = [op for op in facts.ops if op.name == "atomic" and op.attrs["space"] == "global"]
    spans = {op.span for op in ops}
    arrays = arrays_of(facts)
    for op in ops:
        if all(v.op is None or v.op.name in UNMOVED for v in facts.made_from(op.operands[0])):  # one place for all
            spans.discard(op.span)
            lanes = facts.places.get(op.span, Counter())["threads:atomic.global"]
            total += lanes * costs.atomic_alone[op.attrs["kind"].startswith("f")]
    first, most = costs.atomics
    for span in spans:
        counts = facts.places.get(span, Counter())
        sectors, bytes = counts["global_store_sectors"], counts["global_store_bytes"]
        is_scattered = (span, "store") in facts.unknown and sectors * SECTOR > APART * bytes
        size = max((sizes.get(name, 1 << 30) for name in arrays.get((span, "store"), ())), default=1 << 30)
        rate = min(most, first * (size / 1024) ** SPREAD)
        total += (sectors if is_scattered else sectors / LINE) / rate
    combined: str = part("explain", program.machine).COMBINED
    of_boxes = {op.span for op in facts.ops if combined in op.attrs.get("isa", "")}
    moved = sum(facts.places.get(span, Counter())["global_store_boxes"] for span in of_boxes)
    return total + moved / (SECTOR * LINE) / costs.bulk_atomics


UNMOVED = ("rename", "join", "constant", "keep")
"""Operations that leave an address what it is for every lane of every program."""
LINE = 4
"""Sectors of a line."""
SPREAD = 1.22
"""The power of an array's size with which the parts of the L2 cache grow that its atomic operations are done in."""


def _rounds(blocks: int, at_a_time: int, longest: float) -> float:
    """How often blocks follow each other: whole rounds where there are few; where there are many, parts of one too. Of
    blocks that differ, the longest by the mean ends by half of what it is longer after the others would have ended, as
    it begins anywhere in the last round; where there is one round, by all of it."""
    waves = blocks / at_a_time
    later = (longest - 1.0) * (1.0 if waves <= 1 else LATER)
    return later + (float(ceil(waves)) if waves < FEW_WAVES else waves)


LATER = 0.5
"""The part of what the longest block is longer that is to be waited for."""


def _passes_of_shared(facts: Facts, walk: Walk, warps: int) -> float:
    """Passes over shared memory for each warp: wavefronts that were counted, or as many as the widths of accesses say
    where some of them depend on data; and shuffles, which go the same way. Matrix units have a way of their own."""
    assert facts.program is not None
    own_ways: tuple[str, ...] = part("explain", facts.program.machine).OWN_WAYS
    counted = sum(
        counts["shared_load_wavefronts"] + counts["shared_store_wavefronts"]
        for counts in facts.places.values()
        if not any(name.startswith(own_ways) for name in counts)
    )
    passes = counted / max(1, warps)
    if not facts.explanation.counts.exact:
        passes = max(passes, walk.pipes["shared"] - walk.pipes["shuffles"])
    return passes + walk.pipes["shuffles"]


APART_CYCLES = {"load": 1.0, "store": 2.0}
"""Cycles of a line of which lanes want a part."""


def _passes_of_sectors(facts: Facts, costs: Costs) -> float:
    """Cycles of the L1 cache for what the grid loads and stores: a line of 128 bytes at a time."""
    cycles = 0.0
    for counts in facts.places.values():
        for verb in ("load", "store"):
            sectors, bytes = counts[f"global_{verb}_sectors"], counts[f"global_{verb}_bytes"]
            lines = counts[f"global_{verb}_lines"] or sectors / LINE
            apart = sectors > 1.5 * bytes / SECTOR
            passes = lines * (APART_CYCLES[verb] if apart else LINE * SECTOR / costs.line)
            if verb == "load" and any(name.startswith("kind:copy_async") for name in counts):
                passes = max(0.0, passes - counts["shared_store_wavefronts"])  # which put the same lines into place
            cycles += passes
    return cycles


def _dram(facts: Facts, sizes: Mapping[str, int], costs: Costs) -> tuple[Moved, Moved, Moved]:
    """What DRAM has to do at least, as a rule, and at most."""
    touched: defaultdict[tuple[str, str], float] = defaultdict(float)
    asked: defaultdict[tuple[str, str], float] = defaultdict(float)
    apart: defaultdict[tuple[str, str], float] = defaultdict(float)
    scattered: set[tuple[str, str]] = set()
    looked_up, by_data = set[tuple[str, str]](), _by_data(facts)
    for (span, verb), names in arrays_of(facts).items():
        counts = facts.places.get(span, Counter())
        names = names or [""]  # an address from memory: of no array that is known
        bytes, wanted = float(SECTOR * _distinct(counts, verb)), counts[f"global_{verb}_bytes"]
        for name in names:
            touched[name, verb] += bytes / len(names)
            is_apart = bytes > APART * wanted
            # of a sector that two accesses next to each other have a part of, each has its own part
            asked[name, verb] += (bytes if is_apart else min(bytes, wanted)) / len(names)
            if (span, verb) in facts.unknown:
                scattered.add((name, verb))
                apart[name, verb] += bytes / len(names) * is_apart
            elif (span, verb) in by_data:
                looked_up.add((name, verb))
    least, typical, most = Moved(), Moved(), Moved()
    for (name, verb), bytes in touched.items():
        size = sizes.get(name)
        if size is None:
            bounds = bytes / REUSED, bytes / 2, bytes
        elif (name, verb) in scattered:
            bytes = asked[name, verb]
            more = 1.0 + apart[name, verb] / bytes * (costs.dram_scattered / SECTOR - 1.0) if bytes else 1.0
            bounds = min(bytes, size), _looked_up(bytes, size, costs) * more, bytes * more
        elif (name, verb) in looked_up and size > costs.l2_bytes and not facts.loops:
            bytes = asked[name, verb]
            bounds = min(bytes, size), _looked_up(bytes, size, costs), bytes
        else:
            bytes = asked[name, verb]
            bounds = (min(bytes, _again(facts, bytes, size, costs)),) * 3
        for moved, each in zip((least, typical, most), bounds, strict=True):
            moved.add(verb, each)
            if verb == "load" and bytes:
                moved.parts[name] = min(1.0, each / bytes)
    return least, typical, most


def _by_data(facts: Facts) -> set[tuple[Span | None, str]]:
    """The loads from addresses that depend on loaded numbers, as rows that indices choose, by their places.

    Indices that are known tell how many bytes are asked for, but not whether a row is asked for again while it is in
    the L2 cache. In programs without loops it is as with random ones; those that loop over tiles of what they look up,
    as weights of an expert, share it with programs that run at the same time.
    """
    loaded, found = set[Value](), set[tuple[Span | None, str]]()
    for op in facts.program.body.walk() if facts.program is not None else ():
        if any(x in loaded for x in op.operands):
            loaded.update(op.results, *(region.arguments for region in op.regions))
        is_copy = op.name == "copy_async"
        if (is_copy or (op.name == "load" and op.attrs["space"] == "global")) and op.operands[is_copy] in loaded:
            found.add((op.span, "load"))
        if op.name == "load":  # from shared memory too, by way of which indices change their layout
            loaded.update(op.results)
    return found


APART = 2.0
"""Bytes of sectors by bytes that are asked for, from which on an access is scattered."""


@dataclass
class Moved:
    """Bytes that DRAM reads and writes."""

    read: float = 0.0
    written: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)
    """By array, the part of what is loaded of it that comes from DRAM."""
    has_others: bool = True
    """Whether others have left something in the L2 cache that is to be written back."""

    def add(self, verb: str, bytes: float) -> None:
        """More of them."""
        if verb == "load":
            self.read += bytes
        else:
            self.written += bytes

    @property
    def bytes(self) -> float:
        """All of them."""
        return self.read + self.written

    def nanoseconds(self, costs: Costs) -> float:
        """What they take, with what others have left in the L2 cache to be written back; as much is left again."""
        first, part, most = costs.dirty
        before = min(self.read, first) + part * max(0.0, self.read - first)
        before = max(0.0, min(before, most) - part * self.written) if self.has_others else 0.0
        turns = costs.dram_turn * min(self.read, self.written)
        return (self.read + before) / costs.dram_read + self.written / costs.dram_write + turns


def _looked_up(bytes: float, size: int, costs: Costs) -> float:
    """Bytes that DRAM gives where so many are looked up anywhere in an array: each place of it that is met once, and
    what is met again and has left the L2 cache meanwhile."""
    met = size * (1 - exp(-bytes / size)) if size else 0.0
    kept = min(1.0, costs.l2_bytes * KEPT / size) if size else 1.0
    return met + (bytes - met) * (1 - kept)


KEPT = 0.5
"""The part of the L2 cache that an array has to itself, while others pass through it; not measured by itself yet."""


def _again(facts: Facts, bytes: float, size: int, costs: Costs) -> float:
    """What DRAM gives of so many bytes that are asked of an array: all of it once, if it stays in the L2 cache.

    Of a larger array all is given that is asked for, if the programs that run at a time ask for more than the cache
    holds, as where each goes over its part several times in loops; but not where many programs ask for the same, nor
    where accesses that follow each other at once do.
    """
    e, o = facts.explanation, facts.explanation.occupancy
    if size <= costs.l2_bytes or o is None:
        return size
    at_a_time = min(1.0, o.blocks * o.multiprocessors / max(1, e.counts.programs))
    if facts.loops and bytes * at_a_time > costs.l2_bytes and bytes <= PASSES * size:
        return bytes
    return max(size, bytes / REUSED)


PASSES = 4
"""How often a program goes over its part of an array; what is asked for more often, several programs ask for."""
REUSED = 8
"""How often what is read again of an array that is larger than the L2 cache is found there: blocks that run at a time
read the same rows."""


def _distinct(counts: Counter[str], verb: str) -> int:
    """Sectors that go beyond the L1 cache: of an access of several registers, those that differ."""
    sectors, distinct = counts[f"global_{verb}_sectors"], counts[f"global_{verb}_distinct"]
    boxes = counts[f"global_{verb}_boxes"] // SECTOR
    return boxes + (min(sectors, distinct) if distinct else sectors)


def _warps_of_loops(program: LaneProgram) -> dict[int, int]:
    """The warps of a block that run each loop: all, or those of its partition."""
    found = {id(op): program.warps for op in program.body.walk() if op.name in ("for", "while")}
    for top in program.body.ops:
        if top.name == "partitions":
            for region, warps in zip(top.regions, top.attrs["warps"], strict=True):
                found.update({id(op): warps for op in region.walk() if id(op) in found})
    return found


def _iterations(facts: Facts) -> Callable[[LaneOp], float]:
    """How often a loop turns each time that it is entered, of what the counter found at its place."""
    program, e = facts.program, facts.explanation
    assert program is not None
    blocks = max(1, e.counts.programs * program.blocks)
    warps = _warps_of_loops(program)
    there: Counter[tuple[Span | None, str]] = Counter()
    for loop in facts.loops:  # those at one place, such as the copies of a loop in partitions, are taken to turn alike
        there[loop.span, loop.counted_as] += warps[id(loop)]
    outer: dict[int, LaneOp] = {}
    for loop in facts.loops:
        for region in loop.regions:
            outer.update({id(op): loop for op in region.walk() if op.name in ("for", "while") and id(op) != id(loop)})

    def all_turns(op: LaneOp) -> float:
        counts: Mapping[str, int] = facts.places.get(op.span, {})
        return counts.get(f"kind:{op.counted_as}", 0) / blocks / there[op.span, op.counted_as]

    def turns(op: LaneOp) -> float:
        entered = all_turns(outer[id(op)]) if id(op) in outer else 1.0
        return all_turns(op) / entered if entered else 0.0

    return turns
