"""What the page shows of an explanation, as plain data that its scripts draw.

    data = page_data(e)            # {"kernel": ..., "lines": [...], "layouts": [...], "tiles": [...], ...}

A place in the source is a text, "0:53": the number of its file among `files`, and the line. A layout stands once among
`layouts`, with its linear form, and rows have its number there; the page draws it, and opens the layout page on it.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from weft.base import LayoutError, Span, load
from weft.base.remarks import (
    Barrier,
    Conversion,
    Fence,
    Gathered,
    LayoutChanged,
    LayoutChosen,
    Placed,
)
from weft.base.remarks.remark import Site
from weft.ir.lane import ELEMENT_BITS

from .findings import page_of
from .next_step import next_text
from .record import Access, Buffer, Converted, Explanation, Finding, Held, Iteration, Tile, line_key
from .roofline import roofline_of
from .text import access_kind, access_reason, layout_text, occupancy_text

__all__ = ["page_data"]

MARGIN = 2
"""Lines of source that are shown before and after those on which something is done."""
FAR = 12
"""Lines without anything between two that have something, from which on they are left out."""
TRACKS = {"work": "the warp", "wait": "the warp", "product": "matrix units"}
"""Of an iteration; loads and copies have one for each line."""
SHOWN_ELSEWHERE = (LayoutChosen, LayoutChanged, Conversion, Gathered, Barrier, Fence, Placed)
"""Remarks that the page has rows of their own for; those of accesses as well."""


def page_data(e: Explanation) -> dict[str, Any]:
    """All of it, as numbers, texts, lists and dictionaries."""
    return _Page(e).data()


class _Page:
    def __init__(self, e: Explanation) -> None:
        self.e = e
        self.files: list[str] = []
        self.layouts: list[dict[str, Any]] = []
        self.numbers: dict[tuple[str, tuple[int, ...]], int] = {}
        if e.span is not None:
            self.file(e.span.file)

    def data(self) -> dict[str, Any]:
        e = self.e
        shown_accesses = {id(a.remark) for a in e.accesses}
        others = [r for r in e.remarks if not isinstance(r, SHOWN_ELSEWHERE) and id(r) not in shown_accesses]
        rows = {
            "tiles": [self.tile(t) for t in e.tiles],
            "accesses": [self.access(a) for a in e.accesses],
            "conversions": [self.conversion(c) for c in e.conversions],
            "barriers": [self.barrier(r) for r in e.remarks if isinstance(r, Barrier | Fence)],
            "buffers": [self.buffer(b) for b in e.buffers],
            "registers": [self.held(h) for h in e.registers],
            "findings": [self.finding(f) for f in sorted(e.findings, key=lambda f: -(f.microseconds or 0.0))],
            "remarks": [{"at": self.at(r.span), "kind": r.kind, "text": r.message} for r in others],
        }
        return {
            "kernel": e.kernel,
            "target": e.target,
            "grid": list(e.grid),
            "arguments": dict(e.arguments),
            "options": dict(e.options),
            "programs": e.counts.programs,
            "exact": e.counts.exact,
            "note": e.counts.note,
            "total": _shown(e.counts.total),
            "time": self.time(),
            "untimed": e.no_time,
            "next": next_text(e),
            "iterations": [self.iteration(each) for each in e.time.iterations] if e.time is not None else [],
            "roofline": self.roofline(),
            "occupancy": None if e.occupancy is None else occupancy_text(e.occupancy).split("\n    "),
            "lines": self.lines(),
            "files": self.files,
            "layouts": self.layouts,
            "pages": {code: page_of(code) for code in sorted({f.code for f in e.findings})},
            **rows,
        }

    # -- places ----------------------------------------------------------------------------------------------------

    def file(self, name: str) -> int:
        if name not in self.files:
            self.files.append(name)
        return self.files.index(name)

    def at(self, span: Span | None) -> str | None:
        return None if span is None else f"{self.file(span.file)}:{span.line}"

    def site(self, site: Site | None) -> dict[str, Any] | None:
        return None if site is None else {"what": site.what, "at": self.at(site.span)}

    # -- the source ------------------------------------------------------------------------------------------------

    def lines(self) -> list[dict[str, Any]]:
        """The source, file by file, with the counters of each line; None for text marks lines that are left out."""
        found: list[dict[str, Any]] = []
        by_place = [(line.span, line) for line in self.e.lines if line.span is not None]
        for span, _ in by_place:
            self.file(span.file)
        shares = dict(self.e.time.lines) if self.e.time is not None else {}
        for number, name in enumerate(list(self.files)):
            told = {span.line: line for span, line in by_place if span.file == name}
            current = all(linecache.getline(name, n).strip() == line.source.strip() for n, line in told.items())
            numbers = self._numbers(number, name, sorted(told)) if current else sorted(told)
            last = None
            for n in numbers:
                if last is not None and n > last + 1:
                    found.append({"at": None, "file": number, "number": n, "text": None})
                last = n
                text = linecache.getline(name, n).rstrip("\n") if current else told[n].source
                line = {"at": f"{number}:{n}", "file": number, "number": n, "text": text}
                if n in told:
                    line["counts"] = _shown(told[n].counts)
                    line["share"] = shares.get(line_key(self.e, name, n), 0.0)
                found.append(line)
        return found

    def _numbers(self, number: int, name: str, told: Sequence[int]) -> list[int]:
        """The lines of a file that are shown: those with something, and what is around them."""
        start = self.e.span.line if self.e.span is not None and number == 0 else None
        near: set[int] = set()
        ends = list(told) if start is None else sorted({start, *told})
        for a, b in pairwise(ends):
            near.update(range(a, b) if b - a <= FAR else ())
        for n in ends:
            near.update(range(max(1, n - MARGIN), n + MARGIN + 1))
        first, last = min(ends, default=0), max(ends, default=0)
        return [n for n in sorted(near) if first <= n <= last or linecache.getline(name, n).strip()]

    # -- layouts ---------------------------------------------------------------------------------------------------

    def layout(self, text: str, tile: str) -> int:
        """The number of a layout of a tile."""
        *sizes, element = tile.split("x")
        shape = tuple(int(size) for size in sizes)
        if (text, shape) not in self.numbers:
            self.numbers[text, shape] = len(self.layouts)
            name, linear = _linear(text, shape)
            bits = ELEMENT_BITS.get(element, 32)
            self.layouts.append(
                {"text": layout_text(text), "name": name, "shape": list(shape), "bits": bits, "linear": linear}
            )
        return self.numbers[text, shape]

    # -- rows ------------------------------------------------------------------------------------------------------

    def tile(self, tile: Tile) -> dict[str, Any]:
        r = tile.remark
        return {
            "at": self.at(r.span),
            "tile": r.tile,
            "names": list(r.variables),
            "layout": self.layout(tile.layout, r.tile),
            "why": tile.changes[-1].why if tile.changes else "",
            "by": self.site(r.chosen_by),
            "others": [{**(self.site(w.site) or {}), "layout": self.layout(w.layout, r.tile)} for w in r.others],
        }

    def access(self, access: Access) -> dict[str, Any]:
        r = access.remark
        return {
            "at": self.at(r.span),
            "what": access_kind(r),
            "tile": r.tile,
            "bytes": getattr(r, "bytes", 0),
            "most": getattr(r, "most", 0),
            "sectors": list(access.sectors),
            "wavefronts": list(access.wavefronts),
            "why": "; ".join(filter(None, (access_reason(r), access.note))),
            "loop": access.in_loop,
            "text": r.message,
        }

    def conversion(self, each: Converted) -> dict[str, Any]:
        r = each.remark
        row: dict[str, Any] = {
            "at": self.at(r.span),
            "tile": r.tile,
            "plan": r.plan,
            "cycles": r.cycles,
            "loop": each.in_loop,
            "free": each.is_free,
            "considered": [str(a) for a in r.considered if a.what != r.plan],
        }
        if isinstance(r, Conversion):
            row["source"], row["result"] = self.layout(r.source, r.tile), self.layout(r.result, r.tile)
            row["by"], row["for"] = self.site(r.made_by), [self.site(site) for site in r.wanted_by]
        return row

    def barrier(self, r: Barrier | Fence) -> dict[str, Any]:
        what = r.kind if isinstance(r, Fence) else f"{r.kind} of the {r.scope}"
        return {
            "at": self.at(r.span), "what": what, "earlier": self.site(r.earlier), "later": self.site(r.later),
            "text": r.message,
        }  # fmt: skip

    def buffer(self, buffer: Buffer) -> dict[str, Any]:
        r = buffer.remark
        return {
            "at": self.at(r.span), "bytes": r.bytes, "offset": r.offset, "purpose": r.purpose, "kind": r.kind,
            "first": self.at(r.first), "last": self.at(r.last),
        }  # fmt: skip

    def held(self, held: Held) -> dict[str, Any]:
        return {"at": self.at(held.span), "words": held.words, "spills": held.spills, "values": dict(held.values)}

    def finding(self, f: Finding) -> dict[str, Any]:
        return {
            "at": self.at(f.span), "code": f.code, "what": f.what, "why": f.why, "fix": f.fix,
            "gain": f.microseconds, "atMost": f.is_at_most, "unknown": f.no_figure,
        }  # fmt: skip

    def time(self) -> dict[str, Any] | None:
        t = self.e.time
        if t is None:
            return None
        return {
            "us": t.microseconds, "low": t.low, "high": t.high, "bound": t.bound, "part": t.part, "text": str(t),
            "resources": dict(t.resources),
        }  # fmt: skip

    def iteration(self, loop: Iteration) -> dict[str, Any]:
        """By tracks: the warp, matrix units, and what is on its way, a track for each line."""
        tracks: dict[str, list[dict[str, Any]]] = {"the warp": []}
        for h in loop.happenings:
            at = self.at(h.span)
            name = TRACKS.get(h.kind) or f"{h.kind}{f' of line {h.span.line}' if h.span is not None else ''}"
            tracks.setdefault(name, []).append(
                {"at": at, "kind": h.kind, "what": h.what, "start": h.start, "end": h.end}
            )
        return {"at": self.at(loop.span), "cycles": loop.cycles, "count": loop.count, "tracks": list(tracks.items())}

    def roofline(self) -> dict[str, Any] | None:
        found = roofline_of(self.e)
        if found is None:
            return None
        return {
            "operations": found.operations, "what": found.what, "rate": found.rate, "peak": found.peak,
            "memories": [list(each) for each in found.memories],
        }  # fmt: skip


def _shown(counts: Any) -> dict[str, int]:
    """Counters that people read: those by kinds of operations and by threads are left to the JSON."""
    return {name.replace("_", " "): n for name, n in counts.items() if ":" not in name and n}


def _linear(text: str, shape: tuple[int, ...]) -> tuple[str, dict[str, Any] | None]:
    """A layout as an expression, and its linear form; None for what is too large to draw, or lies in no registers."""
    view: Any = load("weft.view")
    try:
        layout = view.parse_layout(text, shape)
        return repr(layout), view.layout_data(view.as_linear(layout, shape))
    except LayoutError:
        return text, None
