"""Wavefronts of shared memory that bank conflicts add, line by line."""

from __future__ import annotations

from weft.base import Span
from weft.base.remarks import SharedAccess
from weft.machines import machine_of, part

from .record import Explanation

__all__ = ["conflicts_of"]


def conflicts_of(explanation: Explanation) -> list[tuple[Span | None, int]]:
    """The lines that have some, and how many over the whole grid.

    Instructions that read shared memory by a way of their own have none, and hide those of their line.
    """
    lost: list[tuple[Span | None, int]] = []
    own = part("explain", machine_of(explanation.target)) if explanation.counts.total else None
    own_ways: tuple[str, ...] = own.OWN_WAYS if own is not None else ()
    for line in explanation.lines:
        counts = line.counts
        if any(name.startswith(own_ways) for name in counts):
            continue
        passes = counts.get("shared_load_wavefronts", 0) + counts.get("shared_store_wavefronts", 0)
        more = passes - counts.get("shared_ideal", 0)
        if more > 0:
            lost.append((_place(explanation, line.span), more))
    return lost


def _place(explanation: Explanation, span: Span | None) -> Span | None:
    """The access of shared memory on a line that has the most conflicts, if there is a remark of it; else the line."""
    if span is None:
        return None
    there = [r for r in explanation.remarks.on(span.line, span.file) if isinstance(r, SharedAccess)]
    worst = max(there, key=lambda r: r.wavefronts - r.least, default=None)
    return worst.span if worst is not None else span
