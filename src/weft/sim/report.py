"""What a launch did: counts, for each source line and in all.

instructions      issued, one for each warp and register; by kind under the names of the lane program
threads           of the accesses of memory among them: the lanes whose mask holds, by the same kinds
*_bytes           bytes that lanes asked for
*_sectors         sectors of 32 bytes of global memory, counted once in each access of a warp
*_wavefronts      passes over the banks of shared memory; *_ideal what they would be without conflicts
"""

from __future__ import annotations

import html
import json
import linecache
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.base import Span

from .errors import SimulationError

__all__ = ["Report"]

SHOWN = (
    "machine_instructions",
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


SHORT = {
    "global_load_bytes": "loaded",
    "global_load_sectors": "sectors",
    "global_store_bytes": "stored",
    "global_store_sectors": "sectors",
    "shared_load_wavefronts": "shared loads",
    "shared_store_wavefronts": "shared stores",
    "shared_ideal": "ideal",
}
"""Columns of the table: bytes of global memory and sectors, wavefronts of shared memory."""


class Report:
    """Counters by source line; `errors` found, what the program printed, and the options' text.

    >>> x = np.ones(32, np.float32)
    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 32)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> report = double[(1,)](x, target="sim:cuda:80")
    >>> report["global_load_sectors"], report["global_store_bytes"]
    (16, 128)
    """

    def __init__(self, options: str = "") -> None:
        self._lines: dict[tuple[str, int] | None, Counter[str]] = {}
        self.errors: list[SimulationError] = []
        self.printed: list[str] = []
        self.options = options
        self.exact = True
        """Whether every count is known; only the counter, which does not run the program, may not know."""

    def add(self, span: Span | None, **counts: int) -> None:
        """Count for a source line."""
        key = (span.file, span.line) if span is not None else None
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = Counter()
        for name, count in counts.items():
            line[name] += count

    def of_warps(self, programs: NDArray[np.int64]) -> None:
        """From here on it is told what warps of these programs do, one number for each warp."""

    def add_each(self, span: Span | None, counts: Mapping[str, NDArray[np.int64]]) -> None:
        """Count for a source line what each of the warps counts for itself."""
        self.add(span, **{name: int(each.sum()) for name, each in counts.items()})

    def add_kind(self, span: Span | None, kind: str, count: int, threads: NDArray[np.int64] | None = None) -> None:
        """Instructions of a kind, and how many threads of each warp take part in them."""
        self.add(span, **{"instructions": count, f"kind:{kind}": count})
        if threads is not None:
            self.add_each(span, {f"threads:{kind}": threads})

    def add_sides(self, span: Span | None, number: int, conditions: NDArray[np.bool_]) -> None:
        """Which side of the `if` with a number (`Block.branches`) each of the warps takes; nothing by default."""

    def tables(self) -> list[dict[Any, Counter[str]]]:
        """The tables that it counts in: that of lines, or what a subclass has in its place."""
        return [self._lines]

    @property
    def lines(self) -> dict[tuple[str, int] | None, Counter[str]]:
        """The counters of each line."""
        return self._lines

    @property
    def total(self) -> Counter[str]:
        """All lines together."""
        total: Counter[str] = Counter()
        for line in self.lines.values():
            total.update(line)
        return total

    @property
    def kinds(self) -> dict[str, int]:
        """Instructions by kind, the most frequent first."""
        return self._by_kind("kind:")

    @property
    def threads(self) -> dict[str, int]:
        """Accesses of memory by kind, one for each thread whose mask holds.

        A GPU counts an instruction of a warp whose masks all fail or not, as its assembler has it: with a predicate, or
        behind a branch. This is what both have in common.
        """
        return self._by_kind("threads:")

    def _by_kind(self, start: str) -> dict[str, int]:
        counts = {name[len(start) :]: n for name, n in self.total.items() if name.startswith(start)}
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def __getitem__(self, name: str) -> int:
        return self.total[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "exact": self.exact,
            "options": self.options,
            "total": {n: c for n, c in sorted(self.total.items()) if ":" not in n},
            "instructions": self.kinds,
            "threads": self.threads,
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

    def to_json(self, indent: int | None = 1) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def rows(self) -> list[list[str]]:
        """A row for each source line and one of sums; a column for each counter that is not zero everywhere."""
        total = self.total
        columns = [name for name in SHOWN if total[name]]
        if "machine_instructions" in columns:  # those of the lane program are of no interest beside them
            columns.remove("instructions")
        rows = [["line", *(SHORT.get(c, c.replace("_", " ")) for c in columns), "source"]]
        for key, line in self._sorted():
            source = linecache.getline(*key).strip() if key else ""
            rows.append([self._shown(key), *(f"{line[c]:,}" if line[c] else "" for c in columns), source])
        rows.append(["all", *(f"{total[c]:,}" for c in columns), ""])
        return rows

    def _shown(self, key: tuple[str, int] | None) -> str:
        """A place without its directory, if one file is all there is of that name."""
        if key is None:
            return "-"
        others = {k[0] for k in self.lines if k is not None and os.path.basename(k[0]) == os.path.basename(key[0])}
        return f"{os.path.basename(key[0]) if len(others) == 1 else key[0]}:{key[1]}"

    def __str__(self) -> str:
        """The table, and what was found."""
        rows = self.rows()
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        last = len(widths) - 1
        lines = [
            "  ".join(
                cell.ljust(w) if i in (0, last) else cell.rjust(w)
                for i, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        if not self.exact:
            lines.append("some accesses depend on data: their bytes, sectors and wavefronts are not in it")
        return "\n".join([*lines, *map(str, self.errors)])

    def _repr_html_(self) -> str:
        """The table for notebooks."""
        head, *body = self.rows()
        cells = "".join(f"<th>{html.escape(c)}</th>" for c in head)
        rows = "".join(
            "<tr>"
            + "".join(
                f"<td style='text-align:{'left' if i in (0, len(row) - 1) else 'right'}'>{html.escape(c)}</td>"
                for i, c in enumerate(row)
            )
            + "</tr>"
            for row in body
        )
        return f"<table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>"
