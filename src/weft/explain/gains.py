"""What cures bring, in microseconds: the time predicted again with what a finding is about as it would be afterwards.

Only for what can be said without compiling: what an access touches by the least that it could, conflicts in banks, and
resources of which a cure takes a known part: a last wave that is not there, one more block on a multiprocessor,
products without their multiplications. A cure that changes the program is compared by explaining both (`e.diff`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import ceil, prod

from weft.base import Span

from .findings import Facts
from .record import Finding, Line, Time
from .timing import TOGETHER, time_of

__all__ = ["with_gains"]

SECTOR = 32


Change = Callable[[Counter[str]], None]


def with_gains(
    facts: Facts, sizes: Mapping[str, int], time: Time | None, findings: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """The findings, with what their cures bring where that is known, the most first."""
    if time is None:
        return findings
    gains = []
    for finding in findings:
        cured = _cured(facts, finding)
        after = time_of(cured, sizes) if cured is not None else None
        gain = _relieved(facts, finding, time) if after is None else time.microseconds - after.microseconds
        gains.append(replace(finding, microseconds=None if gain is None else max(0.0, round(gain, 2))))
    return tuple(sorted(gains, key=lambda finding: -(finding.microseconds or 0.0)))


def _cured(facts: Facts, finding: Finding) -> Facts | None:
    """The facts as if a finding were cured; None where that takes another program."""
    if finding.code in ("uncoalesced-access", "narrow-access"):
        return _with(facts, finding.span, _contiguous)
    if finding.code == "repeated-load":
        return _with(facts, finding.span, _without_loads)
    if finding.code == "bank-conflicts":
        return _with(facts, finding.span, _without_conflicts, whole_line=True)
    return None


def _relieved(facts: Facts, finding: Finding, time: Time) -> float | None:
    """Microseconds less if resources were asked for less; None where that is not known."""
    e, o = facts.explanation, facts.explanation.occupancy
    assert o is not None
    left: dict[str, float] = {}
    if finding.code == "double-precision":
        left = {"double precision": 0.0}
    elif finding.code == "half-empty-wave":
        left = dict.fromkeys(OF_MULTIPROCESSORS, o.waves / ceil(o.waves))
    elif finding.code == "small-grid":
        left = dict.fromkeys(OF_MULTIPROCESSORS, e.counts.programs / o.multiprocessors)
    elif finding.code == "low-occupancy":
        left = {"latency": o.blocks / (o.blocks + 1)}
    elif finding.code == "replicated-work" and facts.program is not None:
        elements = max(prod(tile.shape) for tile in e.tiles)
        left = {"issue": elements / facts.program.machine.threads(facts.program.warps)}
    elif finding.code == "no-matrix-unit":
        products = sum(facts.places.get(finding.span, Counter())[name] for name in MULTIPLIES)
        part = 1 - products / max(1, e.counts["instructions"])
        left = {"issue": part, "latency": part}
    if not left or not time.resources:
        return None
    after = {name: us * left.get(name, 1.0) for name, us in time.resources.items()}
    return _mean(time.resources) - _mean(after)


def _mean(resources: Mapping[str, float]) -> float:
    """As the model of time combines them."""
    return float(sum(us**TOGETHER for us in resources.values()) ** (1 / TOGETHER))


OF_MULTIPROCESSORS = (
    "issue", "matrix units", "special functions", "double precision", "shared memory", "L1", "latency"
)  # fmt: skip
"""Resources of which each multiprocessor has its own."""
MULTIPLIES = ("kind:math.fma", "kind:arith.mulf", "kind:arith.addf", "kind:arith.muli", "kind:arith.addi")
"""Instructions of a product without a matrix unit."""


def _without_loads(counts: Counter[str]) -> None:
    counts["global_load_sectors"] = counts["global_load_distinct"] = 0


def _contiguous(counts: Counter[str]) -> None:
    for verb in ("load", "store"):
        if bytes := counts[f"global_{verb}_bytes"]:
            counts[f"global_{verb}_sectors"] = counts[f"global_{verb}_distinct"] = -(-bytes // SECTOR)


def _without_conflicts(counts: Counter[str]) -> None:
    loads, stores = counts["shared_load_wavefronts"], counts["shared_store_wavefronts"]
    if loads + stores:
        part = counts["shared_ideal"] / (loads + stores)
        counts["shared_load_wavefronts"] = round(loads * part)
        counts["shared_store_wavefronts"] = counts["shared_ideal"] - counts["shared_load_wavefronts"]


def _with(facts: Facts, span: Span | None, change: Change, whole_line: bool = False) -> Facts:
    """The facts with the counters of a place, or of its whole line, changed."""
    e = facts.explanation
    places = {}
    total = Counter(e.counts.total)
    for place, counts in facts.places.items():
        now = Counter(counts)
        same_line = place is not None and span is not None and (place.file, place.line) == (span.file, span.line)
        if place == span or (whole_line and same_line):
            change(now)
        places[place] = now
        total.update({name: now[name] - counts[name] for name in now.keys() | counts.keys()})
    lines = tuple(_line(line, places) for line in e.lines)
    counts_now = replace(e.counts, total=dict(total))
    return replace(facts, explanation=replace(e, counts=counts_now, lines=lines), places=places)


def _line(line: Line, places: Mapping[Span | None, Counter[str]]) -> Line:
    """A line with the counters of its places."""
    counts: Counter[str] = Counter()
    for place, there in places.items():
        if place is not None and line.span is not None and (place.file, place.line) == (line.span.file, line.span.line):
            counts.update(there)
    return replace(line, counts=dict(counts)) if counts else line
