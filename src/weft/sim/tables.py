"""The counters of a report at a moment, and what was counted between two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from .report import Report

__all__ = ["Counts", "add", "less", "tables_of"]

Counts: TypeAlias = list[dict[object, Mapping[str, int]]]


def tables_of(report: Report) -> Counts:
    """The counters of a report, copied."""
    return [{key: dict(line) for key, line in table.items()} for table in report.tables()]


def less(after: Counts, before: Counts) -> Counts:
    """What was counted in between."""
    differences: Counts = []
    for new, old in zip(after, before, strict=True):
        between: dict[object, Mapping[str, int]] = {}
        for key, line in new.items():
            was = old.get(key, {})
            if line != was:
                between[key] = {name: more for name, n in line.items() if (more := n - was.get(name, 0))}
        differences.append(between)
    return differences


def add(report: Report, counts: Counts, times: int) -> None:
    """Count so many times more what was counted."""
    for table, lines in zip(report.tables(), counts, strict=True):
        for key, line in lines.items():
            for name, count in line.items():
                table[key][name] += count * times
