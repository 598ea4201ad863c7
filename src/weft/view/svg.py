"""Grids as SVG: one picture that stands alone, with a title and a description for those who do not see it."""

from __future__ import annotations

from html import escape

from .colours import hexadecimal, ink
from .grid import Grid

__all__ = ["render_svg"]

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
HEIGHT = 20
LETTER = 6.6


def render_svg(grid: Grid, name: str = "") -> str:
    """The grid as an SVG element, sizes in pixels. `name` is written above it."""
    longest = max((len(c.short) for row in grid.cells for c in row), default=1)
    longest = max(longest, max((len(n) for n in grid.column_names), default=1))
    width = max(HEIGHT, round(longest * LETTER + 8))
    side = round(max((len(n) for n in grid.row_names), default=1) * LETTER + 14)
    legend = grid.short_legend or grid.legend
    heading = [t for t in (name, ", ".join([grid.title, *legend]), grid.note) if t]
    top = 18 * len(heading) + 24 + (22 if grid.swatches else 0)
    full_width = max(side + width * len(grid.column_names) + 8, round(max(map(len, heading)) * LETTER) + 16)
    full_height = top + HEIGHT * len(grid.row_names) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full_width}" height="{full_height}" '
        f'viewBox="0 0 {full_width} {full_height}" role="img" font-family="{FONT}" font-size="11">',
        f"<title>{escape(name or grid.title)}</title>",
        f"<desc>{escape('; '.join([grid.title, *legend]))}</desc>",
        f'<rect width="{full_width}" height="{full_height}" fill="#ffffff"/>',
    ]
    for i, text in enumerate(heading):
        weight = ' font-weight="600"' if i == 0 else ""
        parts.append(f'<text x="8" y="{16 + 18 * i}" fill="#1b1f27"{weight}>{escape(text)}</text>')
    at = 8
    for text, fill in grid.swatches:
        y = 18 * len(heading) + 8
        parts.append(f'<rect x="{at}" y="{y}" width="12" height="12" rx="3" fill="{hexadecimal(fill)}"/>')
        parts.append(f'<text x="{at + 16}" y="{y + 10}" fill="#1b1f27">{escape(text)}</text>')
        at += round(26 + len(text) * LETTER)
    parts += _body(grid, side, top, width)
    parts.append("</svg>")
    return "\n".join(parts)


def _body(grid: Grid, side: int, top: int, width: int) -> list[str]:
    parts = ['<g text-anchor="middle">']
    for c, text in enumerate(grid.column_names):
        parts.append(f'<text x="{side + width * c + width / 2:g}" y="{top - 6}" fill="#5b6472">{escape(text)}</text>')
    for r, row in enumerate(grid.cells):
        y = top + HEIGHT * r
        for c, cell in enumerate(row):
            x = side + width * c
            parts.append(
                f'<rect x="{x}" y="{y}" width="{width}" height="{HEIGHT}" fill="{hexadecimal(cell.fill)}" '
                f'stroke="#ffffff"><title>{escape(cell.full)}</title></rect>'
            )
            if cell.short:
                parts.append(
                    f'<text x="{x + width / 2:g}" y="{y + 14}" fill="{ink(cell.fill)}" pointer-events="none">'
                    f"{escape(cell.short)}</text>"
                )
    parts.append('</g>\n<g text-anchor="end">')
    for r, text in enumerate(grid.row_names):
        parts.append(f'<text x="{side - 6}" y="{top + HEIGHT * r + 14}" fill="#5b6472">{escape(text)}</text>')
    parts.append("</g>")
    return parts
