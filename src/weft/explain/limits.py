"""Limits that an explanation is to keep to, in tests: what does not is told with the line of the source.

expect(e, access_bytes=16, conversions=0, bank_conflicts=0, spills=0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from difflib import get_close_matches

from weft.base import Span, caret_line, told
from weft.base.remarks import AccessWidth, SharedAccess, VectorAccess

from .conflicts import conflicts_of
from .record import Explanation

__all__ = ["expect"]

Problem = tuple[Span | None, str]


def expect(explanation: Explanation, **limits: int | float) -> None:
    """AssertionError with everything that does not keep to the limits; see `weft.testing.expect`."""
    unknown = sorted(limits.keys() - CHECKS.keys())
    if unknown:
        near = get_close_matches(unknown[0], CHECKS, 1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise told(TypeError(f"there is no limit {unknown[0]!r}; {meant}there are {', '.join(sorted(CHECKS))}"))
    for name, limit in limits.items():
        if isinstance(limit, bool) or not isinstance(limit, (int, float)):
            raise told(TypeError(f"{name} is a number, got {limit!r}"))
    problems = [problem for name, limit in limits.items() for problem in CHECKS[name](explanation, limit)]
    if problems:
        heading = f"{explanation.kernel} for {explanation.target} does not keep to its limits:"
        raise told(AssertionError("\n".join((heading, *(_shown(*problem) for problem in problems)))))


def _shown(span: Span | None, text: str) -> str:
    """A problem with the line that it is about."""
    line = span.source_line() if span is not None else None
    if span is None or line is None:
        return f"  {text}"
    margin = f"  {span.line:>5} | "
    return f"  {span}: {text}\n{margin}{line}\n{' ' * (len(margin) - 2)}| {caret_line(line, span)}"


def _access_bytes(e: Explanation, least: float) -> Iterator[Problem]:
    if any(isinstance(access.remark, VectorAccess) for access in e.accesses):
        yield e.span, f"accesses of {e.target} are of vectors, not of threads; expected {least:g} bytes or more"
    for access in e.accesses:
        r = access.remark
        if isinstance(r, AccessWidth) and r.bytes < least:
            yield r.span, f"{r.message}; expected {least:g} bytes or more"


def _conversions(e: Explanation, most: float) -> Iterator[Problem]:
    moving = [c for c in e.conversions if not c.is_free]
    if len(moving) > most:
        for each in moving:
            yield (
                each.remark.span,
                f"conversion of {each.remark.message}; expected {most:g} conversions, not {len(moving)}",
            )


def _bank_conflicts(e: Explanation, most: float) -> Iterator[Problem]:
    lost = conflicts_of(e)
    if not e.counts.counted and any(isinstance(access.remark, SharedAccess) for access in e.accesses):
        yield e.span, f"bank conflicts are not counted, as {e.counts.note}; expected {most:g} at most"
    if sum(n for _, n in lost) > most:
        for span, number in lost:
            yield span, f"{number:,} wavefronts are lost to bank conflicts; expected {most:g} at most"


def _findings(e: Explanation, most: float) -> Iterator[Problem]:
    if len(e.findings) > most:
        for finding in e.findings:
            yield finding.span, f"{finding.code}: {finding.what}, as {finding.why}; expected {most:g} findings at most"


def _of_occupancy(name: str, what: str) -> Callable[[Explanation, float], Iterator[Problem]]:
    """A check of the most that a field of the occupancy may be."""

    def check(e: Explanation, most: float) -> Iterator[Problem]:
        value = getattr(e.occupancy, name, None)
        if value is None:
            yield e.span, f"{what} are not known for {e.target} here; expected {most:g} at most"
        elif value > most:
            yield e.span, f"{value:,} {what}; expected {most:g} at most"

    return check


def _blocks(e: Explanation, least: float) -> Iterator[Problem]:
    o = e.occupancy
    if o is None:
        yield e.span, f"blocks on a multiprocessor are not known for {e.target} here; expected {least:g} or more"
    elif o.blocks < least:
        step = f"; one more takes {o.next_step}" if o.next_step else ""
        yield e.span, f"{o.blocks} blocks on a multiprocessor, limited by {o.limit}{step}; expected {least:g} or more"


def _time(e: Explanation, most: float) -> Iterator[Problem]:
    if e.time is None:
        yield e.span, f"no time is predicted: {e.no_time or e.target}; expected {most:g} us at most"
    elif e.time.microseconds > most:
        yield e.span, f"{e.time}; expected {most:g} us at most"


CHECKS: dict[str, Callable[[Explanation, float], Iterator[Problem]]] = {
    "access_bytes": _access_bytes,
    "bank_conflicts": _bank_conflicts,
    "blocks": _blocks,
    "conversions": _conversions,
    "findings": _findings,
    "registers": _of_occupancy("registers", "registers of a thread"),
    "shared_bytes": _of_occupancy("shared_bytes", "bytes of shared memory"),
    "time_us": _time,
    "spills": _of_occupancy("spills", "words of a thread that are spilled"),
}
