"""What resources are asked for less if a finding is fixed: parts that remain, by the name of the resource.

    relief_of(facts, finding, time)       # {"latency": 0.6}: four tenths of the time that programs wait for themselves

These are the fixes that leave a program's counters as they are, or of which it is known what goes: waits of a loop, one
more block on a multiprocessor, a last wave that is not there. What they bring is an estimate; one that is an argument
or an option of the launch is predicted exactly by `Explanation.with_fixes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import ceil, inf, prod
from typing import TypeAlias

from weft.base import Span
from weft.base.remarks import AccessWidth
from weft.ir.lane import ELEMENT_BITS, LaneOp, Value

from .findings import Facts
from .record import Finding, Iteration, Occupancy, Time, line_key
from .timing import FEW_WAVES
from .together import Taken, together

__all__ = ["microseconds_less", "most_of_line", "relief_of"]

OF_MULTIPROCESSORS = (
    "issue", "integers and choices", "floats", "matrix units", "special functions", "double precision",
    "shared memory", "L1", "latency",
)  # fmt: skip
"""Resources of which each multiprocessor has its own."""
MULTIPLIES = ("kind:math.fma", "kind:arith.mulf", "kind:arith.addf", "kind:arith.muli", "kind:arith.addi")
"""Instructions of a product without a matrix unit."""
LANES_BYTES = 128
"""Bytes that the L1 cache, or shared memory, serves in a cycle."""

Parts: TypeAlias = Mapping[str, float]
Relief: TypeAlias = Callable[[Facts, Finding, Time], Parts]


def relief_of(facts: Facts, finding: Finding, time: Time) -> Parts:
    """The parts of resources that remain; empty where that is not known."""
    found = RELIEFS.get(finding.code)
    return found(facts, finding, time) if found is not None else {}


def most_of_line(facts: Facts, finding: Finding, time: Time) -> Parts:
    """What remains if the line of a finding took no time at all: no fix of it leaves less to multiprocessors."""
    span = finding.span
    part = time.lines.get(line_key(facts.explanation, span.file, span.line), 0.0) if span is not None else 1.0
    return dict.fromkeys(OF_MULTIPROCESSORS, 1.0 - part)


def microseconds_less(time: Time, left: Parts) -> float:
    """How much less a launch takes if so much of its resources remains."""
    after = {name: us * left.get(name, 1.0) for name, us in time.resources.items()}
    resident = time.resident or inf
    return together(Taken(time.resources, resident)) - together(Taken(after, resident))


# -- the machine ------------------------------------------------------------------------------------------------------


def _occupancy(facts: Facts) -> Occupancy:
    o = facts.explanation.occupancy
    assert o is not None
    return o


def _last_wave(facts: Facts, finding: Finding, time: Time) -> Parts:
    """Multiprocessors have whole blocks, and programs whole rounds: as if they had the mean."""
    o = _occupancy(facts)
    if o.waves >= FEW_WAVES:
        return {"latency": 1.0}
    each = o.waves * o.blocks
    return {**dict.fromkeys(OF_MULTIPROCESSORS, each / ceil(each)), "latency": o.waves / ceil(o.waves)}


def _small_grid(facts: Facts, finding: Finding, time: Time) -> Parts:
    return dict.fromkeys(OF_MULTIPROCESSORS, facts.explanation.counts.programs / _occupancy(facts).multiprocessors)


def _low_occupancy(facts: Facts, finding: Finding, time: Time) -> Parts:
    blocks = _occupancy(facts).blocks
    return {"latency": blocks / (blocks + 1)}


def _replicated(facts: Facts, finding: Finding, time: Time) -> Parts:
    program = facts.program
    assert program is not None
    elements = max(prod(tile.shape) for tile in facts.explanation.tiles)
    return dict.fromkeys(OF_MULTIPROCESSORS[:-1], elements / program.machine.threads(program.warps))


def _idle(facts: Facts, finding: Finding, time: Time) -> Parts:
    """What lanes do for elements that are not there: all but memory."""
    there = facts.places.get(finding.span, Counter())
    held = sum(n for name, n in there.items() if name.startswith(("threads:load.global", "threads:store.global")))
    every = sum(n for name, n in there.items() if name.startswith(("kind:load.global", "kind:store.global")))
    lanes = facts.program.lanes if facts.program is not None else 1
    return dict.fromkeys(OF_MULTIPROCESSORS[:-1], min(1.0, held / max(1, every * lanes)))


# -- instructions -----------------------------------------------------------------------------------------------------


def _issued_less(facts: Facts, instructions: float) -> float:
    return max(0.0, 1 - instructions / max(1, facts.explanation.counts["instructions"]))


def _without_products(facts: Facts, finding: Finding, time: Time) -> Parts:
    there = facts.places.get(finding.span, Counter())
    part = _issued_less(facts, sum(there[name] for name in MULTIPLIES))
    return {"issue": part, "latency": part}


def _without_mask(facts: Facts, finding: Finding, time: Time) -> Parts:
    """What is computed for a mask alone, and registers that are set to what a load gives where its mask is false."""
    masked = [op for op in facts.ops if op.span == finding.span and op.attrs.get("masked")]
    alone = set(_made_for(facts, {v for op in masked for v in op.operands if _is_mask(v)}))
    less = sum(facts.places.get(op.span, Counter())[f"kind:{op.name}"] / _alike(facts, op) for op in alone)
    for op in masked:
        if op.name == "load" and len(op.operands) > OTHER:
            words = ceil(op.result.count * ELEMENT_BITS[op.result.elem] / WORD)
            times = sum(n for name, n in facts.places[op.span].items() if name.startswith("kind:load.global"))
            less += words * times / _instructions_of(op) / _alike(facts, op)
    part = _issued_less(facts, less)
    return {"issue": part, "integers and choices": part}


def _is_mask(value: Value) -> bool:
    return value.elem == "i1"


def _alike(facts: Facts, op: LaneOp) -> int:
    """Operations of a name at a place, which are counted together."""
    return sum(other.name == op.name and other.span == op.span for other in facts.ops)


def _made_for(facts: Facts, values: set[Value]) -> Iterator[LaneOp]:
    """The operations of arithmetic whose results nothing else uses."""
    users: dict[Value, list[LaneOp]] = {}
    for op in facts.ops:
        for value in op.operands:
            users.setdefault(value, []).append(op)
    for op in reversed(facts.ops):
        of_mask = values.intersection(op.results)
        uses = (user for result in op.results for user in users.get(result, ()))
        if of_mask and op.name.startswith(MASKING) and all(_is_masked(user, of_mask) for user in uses):
            values.update(op.operands)
            yield op


def _is_masked(op: LaneOp, masks: set[Value]) -> bool:
    return bool(op.attrs.get("masked")) or (op.name.startswith(MASKING) and all(_is_mask(v) for v in op.results))


def _instructions_of(load: LaneOp) -> int:
    """Instructions of a load, each of which has several registers side by side."""
    return max(1, load.result.count // int(load.attrs.get("vector", 1)))


OTHER = 2
"""The operand of a load that says what is there where its mask is false."""
WORD = 32
"""Bits of a register."""
MASKING = ("arith.", "rename", "join")
"""Operations that masks are made by."""


def _wider(facts: Facts, finding: Finding, time: Time) -> Parts:
    """Wider accesses are fewer instructions and, where they did not fill lines, fewer of the L1 cache's cycles."""
    width = {
        (r.span, r.access): (r.bytes, r.most)
        for r in (access.remark for access in facts.explanation.accesses)
        if isinstance(r, AccessWidth)
    }
    lanes = facts.program.lanes if facts.program is not None else 1
    less, passes, passes_less = 0.0, 0.0, 0.0
    for span, counts in facts.places.items():
        for verb in ("load", "store"):
            executed = sum(n for name, n in counts.items() if name.startswith(f"kind:{verb}.global"))
            bytes, most = width.get((span, verb), (LANES_BYTES // lanes, 0))
            now = executed * max(1.0, bytes * lanes / LANES_BYTES)
            passes += now
            if span == finding.span and most > bytes:
                fewer = executed * bytes / most
                less += executed - fewer
                passes_less += now - fewer * max(1.0, most * lanes / LANES_BYTES)
    return {"issue": _issued_less(facts, less), "L1": 1 - passes_less / max(1.0, passes)}


# -- loops ------------------------------------------------------------------------------------------------------------


def _loop_of(time: Time, span: Span | None) -> tuple[Iteration | None, float]:
    """The innermost loop that a place is in, or is, by what happens in it; and its part of a warp's time."""
    every = sum(each.cycles * each.count for each in time.iterations)
    for each in time.iterations:
        lines = {(h.span.file, h.span.line) for h in each.happenings if h.span is not None}
        if span is not None and (each.span == span or (span.file, span.line) in lines):
            return each, each.cycles * each.count / every if every else 0.0
    return None, 0.0


def _without_waits(facts: Facts, finding: Finding, time: Time) -> Parts:
    """A loop whose warps never wait for memory."""
    loop, part = _loop_of(time, finding.span)
    if loop is None or not loop.cycles:
        return {}
    waits = sum(h.end - h.start for h in loop.happenings if h.kind == "wait")
    return {"latency": 1 - part * min(1.0, waits / loop.cycles)}


def _without_conversion(facts: Facts, finding: Finding, time: Time) -> Parts:
    """An iteration of a loop without the cycles of a conversion."""
    loop, part = _loop_of(time, finding.span)
    cycles = sum(c.remark.cycles for c in facts.explanation.conversions if c.in_loop and c.remark.span == finding.span)
    if loop is None or not loop.cycles:
        return {}
    left = 1 - part * min(1.0, cycles / loop.cycles)
    return {"latency": left, "shared memory": 0.0 if _alone(facts) else 1.0}


def _alone(facts: Facts) -> bool:
    """Whether shared memory has nothing to do but a single conversion."""
    return len([c for c in facts.explanation.conversions if not c.is_free]) == 1 and not facts.multiplies


RELIEFS: Mapping[str, Relief] = {
    "colliding-atomics": lambda facts, finding, time: {"atomics": 0.0},
    "conversion-in-loop": _without_conversion,
    "double-precision": lambda facts, finding, time: {"double precision": 0.0},
    "fewer-stages": _without_waits,
    "half-empty-wave": _last_wave,
    "idle-lanes": _idle,
    "low-occupancy": _low_occupancy,
    "mask-always-true": _without_mask,
    "narrow-access": _wider,
    "no-matrix-unit": _without_products,
    "not-pipelined": _without_waits,
    "replicated-work": _replicated,
    "small-grid": _small_grid,
}
