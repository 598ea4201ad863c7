"""What two explanations differ in: another target, another configuration, another version of the source or of Weft.

Lines are matched by their text, as numbers change when a line is put in; tiles and accesses by the line that they are
on and their order there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from weft.base import load
from weft.sim.report import SHOWN

from .issued import MACHINE_INSTRUCTIONS
from .plain import to_plain
from .record import Access, Explanation, Line, Tile
from .text import layout_text

__all__ = ["Change", "Difference", "difference", "told"]


@dataclass(frozen=True)
class Change:
    """Something that is not the same: where, what, and the values before and after (None where there is none)."""

    where: str
    what: str
    before: int | float | str | None
    after: int | float | str | None

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        before, after = told(self.before), told(self.after)
        if isinstance(self.before, (int, float)) and isinstance(self.after, (int, float)) and self.before:
            return f"{place}{self.what} {before} -> {after} ({self.after / self.before:.2f} times)"
        return f"{place}{self.what} {before} -> {after}"


@dataclass(frozen=True)
class Difference:
    """All changes; false where there are none."""

    kernels: tuple[str, str]
    changes: tuple[Change, ...]
    explanations: tuple[Explanation, Explanation] | None = field(
        default=None, compare=False, repr=False, metadata={"plain": False}
    )
    """Those that are compared."""

    def __bool__(self) -> bool:
        return bool(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    def to_html(self) -> str:
        """A page with both explanations beside each other, and what changed; see `Explanation.to_html`."""
        page: str = load("weft.explain.page").pair_html(self)
        return page

    def save_html(self, path: str) -> None:
        """Write the page to a file."""
        load("weft.explain.saving").save(path, self.to_html())

    def __str__(self) -> str:
        heading = " -> ".join(dict.fromkeys(self.kernels))
        lines = [f"  {change}" for change in self.changes] or ["  no difference"]
        return "\n".join((heading, *lines))


def difference(before: Explanation, after: Explanation) -> Difference:
    """What is different in `after`."""
    kernels = tuple(f"{e.kernel} for {e.target}" for e in (before, after))
    changes = [
        *_of_mappings("", before.arguments, after.arguments),
        *_of_mappings("", before.options, after.options),
        *_of_values("", "microseconds", *(e.time and e.time.microseconds for e in (before, after))),
        *_of_values("", "bound", *(e.time and e.time.bound for e in (before, after))),
        *_of_values("", "programs", before.counts.programs, after.counts.programs),
        *_of_counts("", before.counts.total, after.counts.total),
        *_of_lines(before, after),
        *_of_occupancy(before, after),
        *_of_findings(before, after),
    ]
    return Difference((kernels[0], kernels[1]), tuple(changes), (before, after))


def _of_values(where: str, what: str, before: Any, after: Any) -> Iterator[Change]:
    if before != after:
        yield Change(where, what, before, after)


def _of_mappings(where: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        yield from _of_values(where, name, before.get(name), after.get(name))


def _of_counts(where: str, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[Change]:
    for name in SHOWN:
        if name == MACHINE_INSTRUCTIONS and not (name in before and name in after):  # of one there is no assembler
            continue
        yield from _of_values(where, name.replace("_", " "), before.get(name, 0), after.get(name, 0))


def _of_lines(before: Explanation, after: Explanation) -> Iterator[Change]:
    """Of lines that are in both, by their text: counts, layouts, widths, conversions. What comes from no line is left
    out: an assembler adds instructions of its own."""
    lines = [[line for line in e.lines if line.span is not None] for e in (before, after)]
    texts = [[line.source for line in of] for of in lines]
    for tag, i, j, k, m in SequenceMatcher(None, texts[0], texts[1], autojunk=False).get_opcodes():
        pairs: Sequence[tuple[Line | None, Line | None]]
        if tag in ("equal", "replace") and j - i == m - k:
            pairs = list(zip(lines[0][i:j], lines[1][k:m], strict=True))
        else:
            pairs = [*((line, None) for line in lines[0][i:j]), *((None, line) for line in lines[1][k:m])]
        for old, new in pairs:
            yield from _of_line(before, old, after, new)


def _of_line(before: Explanation, old: Line | None, after: Explanation, new: Line | None) -> Iterator[Change]:
    line = new or old
    assert line is not None
    where = f"line {line.span.line}" if line.span is not None else "no line"
    yield from _of_values(where, "source", old.source if old else None, new.source if new else None)
    yield from _of_counts(where, old.counts if old else {}, new.counts if new else {})
    for of in (_layouts, _widths, _moves):
        yield from _of_mappings(where, of(before, old), of(after, new))


def _on(line: Line | None, rows: Sequence[Any]) -> list[Any]:
    """Those that are about a line."""
    if line is None or line.span is None:
        return []
    file, number = line.span.file, line.span.line
    spans = [(row, row.remark.span) for row in rows]
    return [row for row, span in spans if span is not None and (span.file, span.line) == (file, number)]


def _layouts(e: Explanation, line: Line | None) -> dict[str, str]:
    tiles: list[Tile] = _on(line, e.tiles)
    return {f"layout of {', '.join(t.remark.variables) or t.remark.tile}": layout_text(t.layout) for t in tiles}


def _widths(e: Explanation, line: Line | None) -> dict[str, int]:
    accesses: list[Access] = _on(line, e.accesses)
    return {f"bytes of a {a.remark.access}": a.remark.bytes for a in accesses if hasattr(a.remark, "bytes")}


def _moves(e: Explanation, line: Line | None) -> dict[str, str]:
    moves = [c.remark for c in _on(line, e.conversions)]
    return {f"conversion of {r.tile}": f"{r.plan}, {r.cycles:.0f} cycles" for r in moves}


def _of_occupancy(before: Explanation, after: Explanation) -> Iterator[Change]:
    old, new = ({} if e.occupancy is None else to_plain(e.occupancy) for e in (before, after))
    for name in ("registers", "spills", "shared_bytes", "blocks", "limit"):
        yield from _of_values("", name.replace("_", " "), old.get(name), new.get(name))


def _of_findings(before: Explanation, after: Explanation) -> Iterator[Change]:
    """Those that are gone, that are new, and that say something else of the same line of source."""
    old, new = map(_by_line, (before, after))
    for key in dict.fromkeys((*old, *new)):
        gone = [what for what in old.get(key, []) if what not in new.get(key, [])]
        come = [what for what in new.get(key, []) if what not in old.get(key, [])]
        for was, now in zip_longest(gone, come):
            yield Change("finding", key[0], was, now)


def _by_line(e: Explanation) -> dict[tuple[str, str], list[str]]:
    """What findings say, by their code and the text of the line."""
    texts = {(line.span.file, line.span.line): line.source for line in e.lines if line.span is not None}
    found: dict[tuple[str, str], list[str]] = {}
    for f in e.findings:
        place = texts.get((f.span.file, f.span.line), "") if f.span is not None else ""
        found.setdefault((f.code, place), []).append(f.what)
    return found


def told(value: Any) -> str:
    """A value for people."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)
