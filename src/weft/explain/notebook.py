"""The compact view of an explanation for notebooks: HTML without scripts, small however large the kernel is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from .paged import page_data
from .record import Explanation, Finding
from .text import gain_text

__all__ = ["notebook_html"]

MOST_FINDINGS = 12
MOST_LINES = 60
MOST_TEXT = 300
"""Characters of the HTML of a line, and of a sentence of a finding."""


def notebook_html(e: Explanation) -> str:
    """The heading, what each resource takes, findings, and the source; of a large kernel the slowest lines."""
    parts = [_heading(e), _resources(e), _findings(e.findings), _source(e)]
    style = "font:13px/1.45 system-ui,sans-serif;max-width:1100px"
    return f'<div style="{style}">{"".join(parts)}</div>'


def _heading(e: Explanation) -> str:
    facts = [f"grid {'x'.join(map(str, e.grid))}", *(f"{name} = {text}" for name, text in e.arguments.items())]
    time = f'<div style="font-size:1.35em;font-weight:600">{escape(str(e.time))}</div>' if e.time is not None else (
        f"<div>time: {escape(e.no_time)}</div>" if e.no_time else ""
    )
    note = f"<div>{_cut(e.counts.note)}</div>" if e.counts.note else ""
    return (
        f"<b><code>{escape(e.kernel)}</code> for {escape(e.target)}</b>{time}"
        f'<div style="opacity:.7">{_cut(", ".join(facts), 4 * MOST_TEXT)}</div>{note}'
    )


def _resources(e: Explanation) -> str:
    if e.time is None or not e.time.resources:
        return ""
    most = max(e.time.microseconds, *e.time.resources.values())
    bars = "".join(
        f'<div style="display:grid;grid-template-columns:9em 1fr 5.5em;gap:.6em;align-items:center">'
        f'<span>{escape(name)}</span><span style="height:.55em;border-radius:.3em;width:{100 * took / most:.1f}%;'
        f'background:{"#e0842b" if name == e.time.bound else "#7aa7e0"}"></span><span>{took:,.1f} us</span></div>'
        for name, took in e.time.resources.items()
    )
    return f'<div style="margin:.6em 0;max-width:640px">{bars}</div>'


def _findings(findings: Sequence[Finding]) -> str:
    ordered = sorted(findings, key=lambda f: -(f.microseconds or 0))
    items = "".join(
        f'<div style="border-left:3px solid #e0842b;padding:.1em .7em"><b><code>{escape(f.code)}</code></b>'
        f"{f' on line {f.span.line}' if f.span is not None else ''}"
        f"{escape(gain_text(f))}<br>{_cut(f.what)}: {_cut(f.why)}"
        f"<br><i>{_cut(f.fix)}</i></div>"
        for f in ordered[:MOST_FINDINGS]
    )
    return items + _more(len(ordered) - MOST_FINDINGS, "finding")


def _source(e: Explanation) -> str:
    lines = [line for line in page_data(e)["lines"] if line["text"] is not None]
    told = sorted((line for line in lines if "share" in line), key=lambda line: -line["share"])[:MOST_LINES]
    kept = lines if len(lines) <= MOST_LINES else [line for line in lines if line in told]
    most = max((line.get("share", 0.0) for line in kept), default=0.0) or 1.0
    rows = "".join(_row(line, most) for line in kept)
    return (
        f'<details{" open" if len(kept) <= 30 else ""}><summary>Source</summary><pre style="font-size:12px;'
        f'line-height:1.5;overflow:auto;margin:.3em 0">{rows}</pre>{_more(len(lines) - len(kept), "line")}</details>'
    )


def _row(line: dict[str, object], most: float) -> str:
    share = float(str(line.get("share", 0.0)))
    heat = f' style="background:rgba(235,120,30,{0.05 + 0.4 * share / most:.2f})"' if share >= 0.005 else ""
    told = f"{share:.1%}" if share >= 0.0005 else ""
    return f"<span{heat}>{line['number']:>5} {told:>6}  {_cut(str(line['text']))}\n</span>"


def _more(count: int, word: str) -> str:
    """What is left out."""
    text = f"{count} {word}{'s' if count > 1 else ''} more: <code>e.save_html(path)</code> has all of them"
    return f'<div style="opacity:.7">{text}</div>' if count > 0 else ""


def _cut(text: str, most: int = MOST_TEXT) -> str:
    """A text as HTML, of at most so many characters.

    >>> _cut("a < b"), _cut("<" * 9, 9)
    ('a &lt; b', '&lt;…')
    """
    shown = escape(text)
    while len(shown) > most:
        text = text[: max(1, len(text) * most // len(shown) - 1)]
        shown = f"{escape(text)}…"
    return shown
