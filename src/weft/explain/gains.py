"""What cures bring, in microseconds: the time predicted again with what a finding is about as it would be afterwards.

Only for what can be said without compiling: sectors of an access that is spread, and conflicts in banks, both by their
least. A cure that changes the program, as a padded row does, is compared by explaining both (`e.diff`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from weft.base import Span

from .findings import Facts
from .record import Finding, Line, Time
from .timing import time_of

__all__ = ["with_gains"]

SECTOR = 32


Change = Callable[[Counter[str]], None]


def with_gains(
    facts: Facts, sizes: Mapping[str, int], time: Time | None, findings: tuple[Finding, ...]
) -> tuple[Finding, ...]:
    """The findings, with what their cures bring where that is known."""
    if time is None:
        return findings
    gains = []
    for finding in findings:
        cured = _cured(facts, finding)
        after = time_of(cured, sizes) if cured is not None else None
        gain = None if after is None else max(0.0, round(time.microseconds - after.microseconds, 2))
        gains.append(replace(finding, microseconds=gain))
    return tuple(gains)


def _cured(facts: Facts, finding: Finding) -> Facts | None:
    """The facts as if a finding were cured; None where that takes another program."""
    if finding.code == "uncoalesced-access":
        return _with(facts, finding.span, _contiguous)
    if finding.code == "bank-conflicts":
        return _with(facts, finding.span, _without_conflicts, whole_line=True)
    return None


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
