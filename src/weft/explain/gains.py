"""What fixes bring, in microseconds: the time predicted again with what a finding is about as it would be afterwards.

Without compiling: with other counters, as what an access touches by the least that it could, or without the conflicts
of banks; or with resources of which a fix takes a known part (relief.py). Where a fix is an argument or an option of
the launch, `Explanation.with_fixes` compiles it, and says exactly what it brings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from weft.base import Span
from weft.base.remarks import LayoutKept

from .findings import Facts
from .processor import Rates, time_on_cpu
from .record import Finding, Line, Time
from .relief import microseconds_less, most_of_line, relief_of
from .timing import time_of

__all__ = ["with_gains", "with_gains_on_cpu"]

SECTOR, LINE = 32, 128


Change = Callable[[Counter[str]], None]


def with_gains(
    facts: Facts, sizes: Mapping[str, int], time: Time | None, findings: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """The findings, with what their fixes bring or why that is not known, the most first. Some are left out
    where they bring nothing."""
    if time is None:
        return findings
    gains = []
    for finding in findings:
        gain = _gain(facts, sizes, time, finding)
        if finding.code in LEFT_OUT and _is_worthless(facts, finding, gain, time):
            continue
        why_not = NO_FIGURE.get(finding.code, "") if gain is None else ""
        at_most = finding.code in AT_MOST and gain is not None
        gains.append(replace(finding, microseconds=gain, no_figure=why_not, is_at_most=at_most))
    return tuple(sorted(gains, key=lambda finding: -(finding.microseconds or 0.0)))


def _is_worthless(facts: Facts, finding: Finding, gain: float | None, time: Time) -> bool:
    """Whether a fix brings nothing; one of which it is not known what it brings, even if its line took no time."""
    if gain is not None:
        return gain < WORTH * time.microseconds
    return microseconds_less(time, most_of_line(facts, finding, time)) < WORTH_TRYING * time.microseconds


def with_gains_on_cpu(facts: Facts, rates: Rates | None, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The same for a CPU, of which the model knows bytes and arithmetic, and no instructions."""
    time = facts.explanation.time
    if time is None or rates is None:
        return findings
    gains = []
    for finding in findings:
        gain = finding.microseconds
        fixed = _fixed(facts, finding) if finding.code in ("repeated-load", "strided-access") else None
        after = time_on_cpu(fixed, facts.sizes, rates) if fixed is not None else None
        if after is not None:
            gain = max(0.0, round(time.microseconds - after.microseconds, 2))
        why_not = NO_FIGURE.get(finding.code, BY_INSTRUCTIONS) if gain is None else ""
        gains.append(replace(finding, microseconds=gain, no_figure=why_not))
    return tuple(sorted(gains, key=lambda finding: -(finding.microseconds or 0.0)))


BY_INSTRUCTIONS = "whose gain is not known, as the model of the CPU's time counts bytes and arithmetic, no instructions"
AT_MOST = ("conversion-in-loop", "fewer-stages", "not-pipelined")
"""Findings whose gain is all that is waited for, of which the fixed kernel may still wait for a part."""
LEFT_OUT = (
    *AT_MOST, "bank-conflicts", "half-empty-wave", "low-occupancy", "mask-always-true", "no-matrix-unit", "small-grid",
    "weaker-instruction",
)  # fmt: skip
"""Findings that are none where their fixes bring nothing."""
WORTH = 0.01
"""The part of the time that their fixes have to bring."""
WORTH_TRYING = 0.05
"""The part that all of a line has to take, if it is not known what a fix of it brings."""
NO_FIGURE = {
    "wrapped-offset": "an error, and no matter of time",
    "weaker-instruction": "whose gain is not known without the other kernel: explain it, and compare",
}
"""Why nothing is said of what a fix brings."""


def _gain(facts: Facts, sizes: Mapping[str, int], time: Time, finding: Finding) -> float | None:
    """Microseconds that a fix brings; None where that is not known."""
    gain = 0.0
    fixed, left = _fixed(facts, finding), relief_of(facts, finding, time)
    after = time_of(fixed, sizes) if fixed is not None else None
    if after is None and not left:
        return None
    if after is not None:
        gain += max(0.0, time.microseconds - after.microseconds)
    if left:
        gain += microseconds_less(after or time, left)
    return max(0.0, round(gain, 2))


def _fixed(facts: Facts, finding: Finding) -> Facts | None:
    """The facts as if a finding were fixed; None where that takes another program."""
    if finding.code in ("uncoalesced-access", "narrow-access", "strided-access"):
        return _with(facts, {finding.span}, _contiguous)
    if finding.code == "author-layout":
        tiles = {r.tile for r in facts.explanation.remarks.of(LayoutKept) if r.span == finding.span}
        spans = {access.remark.span for access in facts.explanation.accesses if access.remark.tile in tiles}
        return _with(facts, spans, _contiguous)
    if finding.code == "repeated-load":
        return _with(facts, {finding.span}, _without_loads)
    if finding.code == "bank-conflicts":
        there = facts.places.get(finding.span, Counter())
        passes = there["shared_load_wavefronts"] + there["shared_store_wavefronts"]
        is_access = passes > there["shared_ideal"]
        return _with(facts, {finding.span}, _without_conflicts, whole_line=not is_access)
    if finding.code == "spills":
        e = facts.explanation
        assert e.occupancy is not None
        return replace(facts, explanation=replace(e, occupancy=replace(e.occupancy, spills=0)))
    return None


def _without_loads(counts: Counter[str]) -> None:
    counts["global_load_sectors"] = counts["global_load_distinct"] = counts["global_load_lines"] = 0


def _contiguous(counts: Counter[str]) -> None:
    for verb in ("load", "store"):
        if bytes := counts[f"global_{verb}_bytes"]:
            counts[f"global_{verb}_sectors"] = counts[f"global_{verb}_distinct"] = -(-bytes // SECTOR)
            counts[f"global_{verb}_lines"] = -(-bytes // LINE)


def _without_conflicts(counts: Counter[str]) -> None:
    loads, stores = counts["shared_load_wavefronts"], counts["shared_store_wavefronts"]
    if loads + stores:
        part = counts["shared_ideal"] / (loads + stores)
        counts["shared_load_wavefronts"] = round(loads * part)
        counts["shared_store_wavefronts"] = counts["shared_ideal"] - counts["shared_load_wavefronts"]


def _with(facts: Facts, spans: set[Span | None], change: Change, whole_line: bool = False) -> Facts:
    """The facts with the counters of some places, or of their whole lines, changed."""
    on_lines = {(span.file, span.line) for span in spans if span is not None}
    e = facts.explanation
    places = {}
    total = Counter(e.counts.total)
    for place, counts in facts.places.items():
        now = Counter(counts)
        same_line = place is not None and (place.file, place.line) in on_lines
        if place in spans or (whole_line and same_line):
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
