"""Wavefronts of shared memory that bank conflicts add, line by line."""

from __future__ import annotations

from weft.base import Span
from weft.base.remarks import SharedAccess

from .record import Explanation

__all__ = ["conflicts_of"]

OWN_WAYS = ("kind:wgmma", "kind:tcgen05", "kind:bulk")
"""How the kinds of instructions begin that read shared memory by a way of their own, which no bank of it slows down."""


def conflicts_of(explanation: Explanation) -> list[tuple[Span | None, int]]:
    """The lines that have some, and how many over the whole grid."""
    lost: list[tuple[Span | None, int]] = []
    for line in explanation.lines:
        counts = line.counts
        if any(name.startswith(OWN_WAYS) for name in counts):
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
