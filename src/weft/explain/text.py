"""An explanation as text: a heading, and a table for each of its parts that has rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from weft.base.remarks import Remark, SharedAccess, Wish
from weft.base.remarks.remark import in_cycles, with_article
from weft.sim import Report

from .ncu import idle_text, metrics_of
from .nests import nest_tables, place_text, site_text
from .next_step import next_text
from .reasons import price_text, reason_text
from .record import Access, Buffer, Converted, Explanation, Finding, Held, Occupancy, Tile
from .swizzles import numbers_text

__all__ = [
    "access_kind", "access_reason", "gain_text", "heading_text", "layout_text", "occupancy_text", "tables_of",
    "text_of",
]  # fmt: skip

Rows = Sequence[Sequence[str]]


def text_of(explanation: Explanation) -> str:
    """All of it."""
    o = explanation.occupancy
    parts = [
        heading_text(explanation),
        _section("Findings", [*map(_finding, alike(explanation.findings)), *pages_text(explanation.findings)]),
        *(_table(title, rows) for title, rows in tables_of(explanation)),
        _section("Occupancy", [occupancy_text(o), *filter(None, [idle_text(explanation)])] if o else []),
    ]
    return "\n\n".join(part for part in parts if part)


def tables_of(explanation: Explanation) -> list[tuple[str, Rows]]:
    """The tables, each with its title, the first of its rows the names of its columns."""
    return [
        ("Lines", _line_rows(explanation)),
        *nest_tables(explanation),
        ("Layouts", _tile_rows(explanation)),
        ("Accesses of memory", _access_rows(explanation.accesses)),
        ("Conversions", _conversion_rows(explanation.conversions)),
        ("Buffers", _buffer_rows(explanation.buffers)),
        ("Registers that a thread holds", _register_rows(explanation.registers)),
        ("What Nsight Compute would say", _metric_rows(explanation)),
    ]


def _metric_rows(e: Explanation) -> Rows:
    rows = [(m.name, str(m), m.source) for m in metrics_of(e)]
    return [("metric", "value", "from"), *rows] if rows else []


def layout_text(layout: str) -> str:
    """A layout as layout IR has it, shorter: names of parameters are left out.

    >>> layout_text("#ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>")
    'blocked([4], [32], [4], [0])'
    """
    short = re.sub(r"#ttn?g\.", "", layout).replace("<{", "(").replace("}>", ")")
    return re.sub(r"\w+ = ", "", short) if "linear" not in short else short


def heading_text(e: Explanation) -> str:
    """The kernel, its launch, its time, and a note about the counts, a line for each."""
    size = "x".join(map(str, (e.grid[0], *(s for s in e.grid[1:] if s > 1 or e.grid[2] > 1))))
    warps = f", {e.options['num_warps']} warps each" if "num_warps" in e.options and e.target != "cpu" else ""
    where = f" ({e.span.file}:{e.span.line})" if e.span is not None else ""
    programs = f"{e.counts.programs:,} program{'s' if e.counts.programs != 1 else ''}"
    lines = [f"{e.kernel}{where} for {e.target}", f"grid {size}: {programs}{warps}"]
    lines.append(", ".join(f"{name} = {text}" for name, text in e.arguments.items()))
    if e.time is not None:
        lines += [f"time: {e.time}", next_text(e)]
    elif e.no_time:
        lines.append(f"time: {e.no_time}")
    if e.counts.note:
        lines.append(f"note: {e.counts.note}")
    return "\n".join(line for line in lines if line)


def alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings, those that say the same of several places together, in their order."""
    groups: dict[tuple[str, str, str, str], list[Finding]] = {}
    for f in findings:
        groups.setdefault((f.code, f.what, f.why, f.fix), []).append(f)
    return list(groups.values())


def _finding(group: Sequence[Finding]) -> str:
    first, places = group[0], ", ".join(dict.fromkeys(place_text(f.span) for f in group))
    if len(group) > 1:
        each = [f.microseconds for f in group if f.microseconds is not None]
        first = replace(first, microseconds=sum(each) if each else None)
    head = f"line{'s' if ',' in places else ''} {places}: {first.code}{gain_text(first)}"
    return f"{head}\n    {first.what}: {_with_short_layouts(first.why)}\n    fix: {first.fix}"


def gain_text(finding: Finding) -> str:
    """What the fix of a finding brings, after a comma; why that is not known, or nothing."""
    if finding.no_figure:
        return f", {finding.no_figure}"
    us, about = finding.microseconds, "at most" if finding.is_at_most else "about"
    return "" if us is None else f", {about} {us:.1f} us" if us >= LITTLE else ", less than 0.1 us"


LITTLE = 0.1


def pages_text(findings: Sequence[Finding]) -> list[str]:
    """Where to read more of findings."""
    return ["weft explain --page CODE prints a kernel with this finding, and the same kernel fixed"] if findings else []


def _line_rows(e: Explanation) -> Rows:
    report = Report()
    for line in e.lines:
        if line.counts:
            report.lines[(line.span.file, line.span.line) if line.span else None] = Counter(line.counts)
    return report.rows() if report.lines else []


def _tile_rows(e: Explanation) -> Rows:
    rows = [("line", "tile", "variables", "layout", "for", "why", "others wanted")]
    for tile in e.tiles:
        r = tile.remark
        others = "; ".join(_wish(e, tile, wish) for wish in r.others)
        by = site_text(r.chosen_by) if r.chosen_by else "(the default)"
        why = reason_text(tile)
        rows.append((place_text(r.span), r.tile, ", ".join(r.variables), layout_text(tile.layout), by, why, others))
    return rows if e.tiles else []


def _wish(e: Explanation, tile: Tile, wish: Wish) -> str:
    """Who wanted another layout, which, and what it costs that it is not so."""
    price = price_text(e.remarks, e.accesses, wish.site)
    more = f"{in_cycles(wish.cycles)} more in all" if wish.cycles is not None else ""
    return ", ".join(filter(None, (f"{site_text(wish.site)}: {layout_text(wish.layout)}", more, price)))


def _access_rows(accesses: Sequence[Access]) -> Rows:
    rows = [("line", "access", "tile", "bytes", "of", "sectors", "least", "wavefronts", "least", "why")]
    for access in accesses:
        r = access.remark
        sectors, fewest = access.sectors
        passes, least = access.wavefronts
        width, most = getattr(r, "bytes", 0), getattr(r, "most", 0)
        counts = (_number(sectors), _number(fewest), _number(passes), _number(least))
        why = "; ".join(filter(None, (access_reason(r), access.note)))
        rows.append((place_text(r.span), access_kind(r), r.tile, _number(width), _number(most), *counts, why))
    return rows if accesses else []


def access_kind(remark: Remark) -> str:
    """What an access does, in one or two words: `load`, `store shared`."""
    access, instruction = str(getattr(remark, "access", "")), str(getattr(remark, "instruction", ""))
    return f"{access} shared" if instruction == "shared" else f"{access} {instruction}".strip()


def access_reason(remark: Remark) -> str:
    """Why an access is not wider or better; for one that is as wide as can be, nothing."""
    limit = getattr(remark, "limit", None)
    if limit is not None:
        return "" if limit == "widest" else _with_short_layouts(str(getattr(remark, "fact", "")))
    if isinstance(remark, SharedAccess) and remark.lanes:
        return f"{remark.count} of each warp; lanes {numbers_text(remark.lanes)} meet in bank {remark.bank}"
    count = getattr(remark, "count", 0)
    return f"{count} of each warp" if count else remark.message.partition(" by ")[2] or remark.message


def _with_short_layouts(text: str) -> str:
    """A sentence in which layouts are as short as in the tables."""
    return re.sub(r"#ttn?g\.\w+<\{.*?\}>", lambda layout: layout_text(layout[0]), text)


def _conversion_rows(conversions: Sequence[Converted]) -> Rows:
    rows = [("line", "tile", "made by", "wanted by", "plan", "cycles", "in a loop", "not")]
    for each in conversions:
        r = each.remark
        made, wanted = getattr(r, "made_by", None), getattr(r, "wanted_by", ())
        others = "; ".join(str(a) for a in r.considered if a.what != r.plan)
        by = site_text(made) if made is not None else "gather"
        where, whose = "yes" if each.in_loop else "", ", ".join(map(site_text, wanted))
        rows.append((place_text(r.span), r.tile, by, whose, r.plan, f"{r.cycles:.0f}", where, others))
    return rows if conversions else []


def _buffer_rows(buffers: Sequence[Buffer]) -> Rows:
    rows = [("line", "bytes", "at", "what for")]
    for r in (buffer.remark for buffer in buffers):
        lines = list(dict.fromkeys(place_text(s) for s in (r.first, r.last) if s is not None))
        use = f", in use on line {' to '.join(lines)}" if lines else ""
        rows.append((place_text(r.span), f"{r.bytes:,}", f"{r.offset:,}", f"{with_article(r.purpose)}{use}"))
    return rows if buffers else []


def _register_rows(registers: Sequence[Held]) -> Rows:
    rows = [("line", "words", "spilled", "of which")]
    spilling = sorted((held for held in registers[MOST_LINES:] if held.spills), key=lambda held: -held.spills)
    for held in (*registers[:MOST_LINES], *spilling[:MOST_LINES]):
        values = ", ".join(f"{name} {words}{_lives(held, name)}" for name, words in held.values.items())
        rows.append((place_text(held.span), _number(held.words), _number(held.spills), values))
    return rows if registers else []


def _lives(held: Held, name: str) -> str:
    """The lines from which to which a value is held, where these are several."""
    first, last = held.lives.get(name, (0, 0))
    return f" ({first} to {last})" if first != last else ""


MOST_LINES = 5
"""Lines that hold the most, which are shown; and as many that do not, but spill."""


def occupancy_text(o: Occupancy) -> str:
    """How many blocks run at a time, what limits them, and what they take."""
    blocks = f"{o.blocks} block{'s' if o.blocks != 1 else ''} of {o.warps} warps"
    if o.limit == "grid":
        text = f"the grid has {o.of_grid} for a multiprocessor, where {blocks} fit ({o.part:.0%} of its warps)"
        text += f", limited by {o.room}" if o.room else ""
    else:
        text = f"{blocks} on a multiprocessor at a time ({o.part:.0%} of its warps), limited by {_limit(o.limit)}"
    text += f"; one more with {o.next_step}" if o.next_step else ""
    registers = "registers not known, as there is no assembler"
    if o.registers is not None:
        registers = f"{o.registers} registers of a thread"
    spills = f", {o.spills} words spilled" if o.spills else ""
    shared = f"{o.shared_bytes:,} bytes of shared memory"
    return f"{text}\n    {registers}{spills}, {shared}; {o.waves:.2f} waves of programs"


def _limit(limit: str) -> str:
    return f"the {limit}" if limit == "compiler" else limit


# -- words ------------------------------------------------------------------------------------------------------------


def _number(value: int) -> str:
    return f"{value:,}" if value else ""


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join((title, *(f"  {line}" for text in lines for line in text.splitlines()))) if lines else ""


def _table(title: str, rows: Rows) -> str:
    """Columns in line; those of numbers to the right, those without any entry left out."""
    if not rows:
        return ""
    head, *body = rows
    kept = [i for i in range(len(head)) if any(row[i] for row in body)]
    right = [all(re.fullmatch(r"[\d,.\-]*", row[i]) for row in body) for i in kept]
    widths = [max(len(row[i]) for row in rows) for i in kept]
    lines = []
    for row in rows:
        cells = [row[i].rjust(w) if r else row[i].ljust(w) for i, w, r in zip(kept, widths, right, strict=True)]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join((title, *lines))
