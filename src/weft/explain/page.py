"""An explanation as HTML: a page that needs nothing else, and a compact view for notebooks.

The page has the source on the left, with the share of the time that each line takes, and beside it, for the line under
the pointer, what was decided about it and what it does. Findings come first, by what they bring.
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from html import escape

from weft.base import LayoutError, Span

from .record import Explanation, Finding, Tile
from .text import tables_of

__all__ = ["notebook_html", "page_html"]

MARGIN = 2
"""Lines of source that are shown before and after those on which something is done."""
STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:1.2em;color:#1b1f24;background:#fff}
h1{font-size:1.25em;margin:0 0 .3em}h2{font-size:1.05em;margin:1.2em 0 .4em}
.parts{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:1.2em;align-items:start}
.source{font:12.5px/1.5 ui-monospace,monospace;border:1px solid #d0d7de;border-radius:6px;overflow:auto}
.line{display:flex;white-space:pre;cursor:default}.line:hover,.line.on{outline:1px solid #0969da}
.line .n{width:3.5em;text-align:right;padding-right:.8em;color:#57606a;flex:none}
.line .t{width:3.8em;text-align:right;padding-right:.8em;color:#57606a;flex:none}
.about{display:none}.about.on{display:block}
table{border-collapse:collapse;font-size:12.5px}td,th{padding:.15em .6em;text-align:left;vertical-align:top}
th{border-bottom:1px solid #d0d7de}tr:nth-child(even) td{background:#f6f8fa}
.finding{border-left:4px solid #d1242f;padding:.2em .8em;margin:.5em 0}.code{font-family:ui-monospace,monospace}
pre{font:12px/1.3 ui-monospace,monospace;overflow:auto}
@media (prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}tr:nth-child(even) td{background:#161b22}}
"""
SCRIPT = """
const lines=[...document.querySelectorAll('.line')],abouts=[...document.querySelectorAll('.about')];
function show(n){for(const x of lines)x.classList.toggle('on',x.dataset.n===n);
for(const x of abouts)x.classList.toggle('on',x.dataset.n===n)}
for(const x of lines)for(const when of ['mouseenter','focus'])x.addEventListener(when,()=>show(x.dataset.n));
const first=abouts[0];if(first)show(first.dataset.n);
"""


def page_html(explanation: Explanation) -> str:
    """The whole page."""
    e = explanation
    numbers = sorted({line.span.line for line in e.lines if line.span is not None})
    file = next((line.span.file for line in e.lines if line.span is not None), None)
    body = [f"<h1>{escape(e.kernel)} for {escape(e.target)}</h1>", f"<p>{_facts(e)}</p>", _findings(e.findings)]
    if file is not None:
        source = "".join(_source_line(e, file, n) for n in _shown(numbers))
        abouts = "".join(_about(e, file, n) for n in numbers)
        body.append(f'<div class="parts"><div class="source">{source}</div><div>{abouts}</div></div>')
    body.append("".join(_table(title, rows) for title, rows in tables_of(e) if rows))
    head = f'<meta charset="utf-8"><title>{escape(e.kernel)}</title><style>{STYLE}</style>'
    return f"<!doctype html><html><head>{head}</head><body>{''.join(body)}<script>{SCRIPT}</script></body></html>"


def notebook_html(explanation: Explanation) -> str:
    """The heading, findings and the table of lines, without scripts."""
    e = explanation
    first = next((_table(title, rows) for title, rows in tables_of(e) if rows), "")
    return f"<div><b>{escape(e.kernel)} for {escape(e.target)}</b><br>{_facts(e)}{_findings(e.findings)}{first}</div>"


def _facts(e: Explanation) -> str:
    parts = [f"grid {'x'.join(map(str, e.grid))}", *(f"{name} = {text}" for name, text in e.arguments.items())]
    text = escape(", ".join(parts))
    if e.time is not None:
        text += f"<br><b>{escape(str(e.time))}</b>"
    return text + (f"<br>{escape(e.counts.note)}" if e.counts.note else "")


def _findings(findings: Sequence[Finding]) -> str:
    ordered = sorted(findings, key=lambda f: -(f.microseconds or 0))
    return "".join(
        f'<div class="finding"><span class="code">{escape(f.code)}</span> on line {_number(f.span)}'
        f"{f', about {f.microseconds:.1f} us' if f.microseconds else ''}<br>{escape(f.what)}: {escape(f.why)}"
        f"<br><i>{escape(f.cure)}</i></div>"
        for f in ordered
    )


def _number(span: Span | None) -> str:
    return str(span.line) if span is not None else "-"


def _shown(numbers: Sequence[int]) -> range:
    """The lines of source from the first to the last that does something, and a few around them."""
    return range(max(1, numbers[0] - MARGIN), numbers[-1] + MARGIN + 1) if numbers else range(0)


def _source_line(e: Explanation, file: str, number: int) -> str:
    share = e.time.lines.get(str(number), 0.0) if e.time is not None else 0.0
    heat = f' style="background:rgba(255,120,0,{min(0.6, share):.2f})"' if share >= 0.005 else ""
    told = f"{share:.0%}" if share >= 0.005 else ""
    text = escape(linecache.getline(file, number).rstrip("\n"))
    return (
        f'<div class="line" tabindex="0" data-n="{number}"{heat}><span class="n">{number}</span>'
        f'<span class="t">{told}</span><span>{text}</span></div>'
    )


def _about(e: Explanation, file: str, number: int) -> str:
    """All that was decided about a line, and what it does."""
    remarks = "".join(f"<li>{escape(r.kind)}: {escape(r.message)}</li>" for r in e.remarks.on(number, file))
    counts = next(
        (line.counts for line in e.lines if line.span and (line.span.file, line.span.line) == (file, number)), {}
    )
    rows = [("counter", "over the grid"), *((n.replace("_", " "), f"{c:,}") for n, c in counts.items() if ":" not in n)]
    tiles = [t for t in e.tiles if t.remark.span is not None and t.remark.span.line == number]
    pictures = "".join(map(_picture, tiles))
    table = _table(f"Line {number}", rows) if len(rows) > 1 else f"<h2>Line {number}</h2>"
    return f'<div class="about" data-n="{number}">{table}<ul>{remarks}</ul>{pictures}</div>'


def _picture(tile: Tile) -> str:
    try:
        text = tile.picture(limit=(16, 16))
    except LayoutError:  # of a memory, or one that is too large to be drawn
        return ""
    name = ", ".join(tile.remark.variables) or tile.remark.tile
    return f"<details><summary>layout of {escape(name)}</summary><pre>{escape(text)}</pre></details>"


def _table(title: str, rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    kept = [i for i in range(len(head)) if any(row[i] for row in body)]
    cells = "".join(f"<th>{escape(head[i])}</th>" for i in kept)
    lines = "".join("<tr>" + "".join(f"<td>{escape(row[i])}</td>" for i in kept) + "</tr>" for row in body)
    return f"<h2>{escape(title)}</h2><table><tr>{cells}</tr>{lines}</table>"
