"""What a launch did: counts, for each source line and in all.

instructions      issued, one for each warp and register; by kind under the names of the lane program
*_bytes           bytes that lanes asked for
*_sectors         sectors of 32 bytes of global memory, counted once in each access of a warp
*_wavefronts      passes over the banks of shared memory; *_ideal what they would be without conflicts
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from weft.base import Span

from .errors import SimulationError

__all__ = ["Report"]

SHOWN = (
    "instructions",
    "global_load_bytes",
    "global_load_sectors",
    "global_store_bytes",
    "global_store_sectors",
    "shared_load_wavefronts",
    "shared_store_wavefronts",
    "shared_ideal",
    "shuffles",
    "barriers",
)


class Report:
    """Counters by source line; `errors` found, what the program printed, and the options' text."""

    def __init__(self, options: str = "") -> None:
        self.lines: dict[tuple[str, int] | None, Counter[str]] = {}
        self.errors: list[SimulationError] = []
        self.printed: list[str] = []
        self.options = options
        self.exact = True
        """Whether every count is known; only the counter, which does not run the program, may not know."""

    def add(self, span: Span | None, **counts: int) -> None:
        """Count for a source line."""
        key = (span.file, span.line) if span is not None else None
        line = self.lines.get(key)
        if line is None:
            line = self.lines[key] = Counter()
        for name, count in counts.items():
            line[name] += count

    def add_kind(self, span: Span | None, kind: str, count: int) -> None:
        """Instructions of a kind."""
        self.add(span, **{"instructions": count, f"kind:{kind}": count})

    @property
    def total(self) -> Counter[str]:
        """All lines together."""
        found: Counter[str] = Counter()
        for line in self.lines.values():
            found.update(line)
        return found

    @property
    def kinds(self) -> dict[str, int]:
        """Instructions by kind, the most frequent first."""
        kinds = {name[5:]: n for name, n in self.total.items() if name.startswith("kind:")}
        return dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0])))

    def __getitem__(self, name: str) -> int:
        return self.total[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "exact": self.exact,
            "options": self.options,
            "total": {n: c for n, c in sorted(self.total.items()) if not n.startswith("kind:")},
            "instructions": self.kinds,
            "lines": [
                {"place": self._place(key), **dict(sorted(line.items()))} for key, line in self._sorted() if line
            ],
            "errors": [e.to_dict() for e in self.errors],
            "printed": list(self.printed),
        }

    def _sorted(self) -> Iterator[tuple[tuple[str, int] | None, Counter[str]]]:
        yield from sorted(self.lines.items(), key=lambda item: item[0] or ("", 0))

    @staticmethod
    def _place(key: tuple[str, int] | None) -> str:
        return f"{key[0]}:{key[1]}" if key else "-"

    def __str__(self) -> str:
        """A table: a row for each source line, a column for each counter that is not zero everywhere."""
        total = self.total
        columns = [name for name in SHOWN if total[name]]
        rows = [["line", *(c.replace("_", " ") for c in columns)]]
        rows += [[self._place(key), *(str(line[c]) for c in columns)] for key, line in self._sorted()]
        rows.append(["all", *(str(total[c]) for c in columns)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
            for row in rows
        )
