"""Wavefronts of shared memory that bank conflicts add, access by access; line by line for what has no remark."""

from __future__ import annotations

from collections import defaultdict

from weft.base import Span
from weft.base.remarks import SharedAccess
from weft.machines import machine_of, part

from .record import Explanation

__all__ = ["conflicts_of"]


def conflicts_of(explanation: Explanation) -> list[tuple[Span | None, int]]:
    """The places that have some, and how many over the whole grid.

    Instructions that read shared memory by a way of their own have none, and hide those of their line.
    """
    lost: list[tuple[Span | None, int]] = []
    own = part("explain", machine_of(explanation.target)) if explanation.occupancy is not None else None
    own_ways: tuple[str, ...] = own.OWN_WAYS if own is not None else ()
    by_access = _by_access(explanation)
    for line in explanation.lines:
        counts = line.counts
        if any(name.startswith(own_ways) for name in counts):
            continue
        passes = counts.get("shared_load_wavefronts", 0) + counts.get("shared_store_wavefronts", 0)
        more = passes - counts.get("shared_ideal", 0)
        there = by_access.get((line.span.file, line.span.line), []) if line.span is not None else []
        lost += there
        more -= sum(number for _, number in there)
        if more > 0:
            lost.append((_place(explanation, line.span), more))
    return lost


def _by_access(explanation: Explanation) -> dict[tuple[str, int], list[tuple[Span | None, int]]]:
    """The accesses of tiles that lose some, by their lines."""
    found: defaultdict[tuple[str, int], list[tuple[Span | None, int]]] = defaultdict(list)
    for access in explanation.accesses:
        span, (passes, least) = access.remark.span, access.wavefronts
        if isinstance(access.remark, SharedAccess) and span is not None and passes > least:
            found[span.file, span.line].append((span, passes - least))
    return dict(found)


def _place(explanation: Explanation, span: Span | None) -> Span | None:
    """The access of shared memory on a line that has the most conflicts, if there is a remark of it; else the line."""
    if span is None:
        return None
    there = [r for r in explanation.remarks.on(span.line, span.file) if isinstance(r, SharedAccess)]
    worst = max(there, key=lambda r: r.wavefronts - r.least, default=None)
    return worst.span if worst is not None else span
