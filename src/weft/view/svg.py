"""Grids as SVG: one picture that stands alone, with a title and a description for those who do not see it.

A picture of 32 by 32 elements is kept in a notebook, so it is small: one path for each colour, whose title says what
the colour stands for, and one text for each row and ink, in letters of one width, so that columns are blanks apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .colours import hexadecimal, ink
from .grid import Cell, Grid

__all__ = ["render_svg"]

FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
HEIGHT = 20
LETTER = 6.6
BLANK = "\N{NO-BREAK SPACE}"
"""Others are run together, in HTML whatever `xml:space` says."""
MOST_TITLES = 300
"""Colours that are told by a title; where there are more, the picture would not be small."""


def render_svg(grid: Grid, name: str = "") -> str:
    """The grid as an SVG element, sizes in pixels. `name` is written above it."""
    longest = max((len(c.short) for row in grid.cells for c in row), default=1)
    letters = max(longest, max((len(n) for n in grid.column_names), default=1)) + 2
    width = letters * LETTER
    side = round(max((len(n) for n in grid.row_names), default=1) * LETTER + 14)
    legend = grid.short_legend or grid.legend
    heading = [t for t in (name, ", ".join([grid.title, *legend]), grid.note) if t]
    top = 18 * len(heading) + 24 + (22 if grid.swatches else 0)
    full_width = max(round(side + width * len(grid.column_names) + 8), round(max(map(len, heading)) * LETTER) + 16)
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
    parts.append(f'<g transform="translate({side} {top}) scale({width:g} {HEIGHT})">')
    parts += _colours(grid.cells)
    parts.append(f'</g>\n<g transform="translate({side} {top})">')
    parts.append(_lines(len(grid.row_names), len(grid.column_names), width))
    parts.append('<g fill="#5b6472">')
    parts += _row(grid.column_names, letters, -6)
    parts += [
        f'<text x="-6" y="{HEIGHT * r + 14}" text-anchor="end">{escape(text)}</text>'
        for r, text in enumerate(grid.row_names)
    ]
    parts.append('</g>\n<g pointer-events="none">')
    for r, row in enumerate(grid.cells):
        for colour in sorted({ink(cell.fill) for cell in row if cell.short}):
            texts = [cell.short if ink(cell.fill) == colour else "" for cell in row]
            parts += _row(texts, letters, HEIGHT * r + 14, colour)
    parts.append("</g>\n</g>\n</svg>")
    return "\n".join(parts)


def _lines(rows: int, columns: int, width: float) -> str:
    """White lines between cells."""
    across = (f"M0 {HEIGHT * r}h{width * columns:g}" for r in range(1, rows))
    down = (f"M{width * c:g} 0v{HEIGHT * rows}" for c in range(1, columns))
    return f'<path stroke="#ffffff" d="{"".join((*across, *down))}"/>'


def _row(texts: Sequence[str], letters: int, y: int, colour: str | None = None) -> Iterable[str]:
    """Texts in columns of so many letters; none where all are empty."""
    first = next((c for c, text in enumerate(texts) if text), None)
    if first is None:
        return
    line = "".join(text.center(letters) for text in texts[first:]).rstrip()
    blanks = len(line) - len(line.lstrip())
    line = line.lstrip().replace(" ", BLANK)
    x, length = (first * letters + blanks) * LETTER, len(line) * LETTER
    fill = f' fill="{colour}"' if colour else ""
    yield f'<text x="{x:g}" y="{y}" textLength="{length:g}"{fill}>{escape(line)}</text>'


def _colours(cells: Sequence[Sequence[Cell]]) -> Iterable[str]:
    """One path for each colour, in units of cells, with a title where it stands for something."""
    paths: dict[tuple[str, str], list[str]] = {}
    for r, c, high, wide in _rectangles(cells):
        cell = cells[r][c]
        paths.setdefault((hexadecimal(cell.fill), cell.group), []).append(f"M{c} {r}h{wide}v{high}h-{wide}z")
    for (fill, group), path in paths.items():
        drawn = f'<path fill="{fill}" d="{"".join(path)}"'
        yield f"{drawn}><title>{escape(group)}</title></path>" if group and len(paths) <= MOST_TITLES else f"{drawn}/>"


def _rectangles(cells: Sequence[Sequence[Cell]]) -> Iterable[tuple[int, int, int, int]]:
    """Rectangles of one colour that cover all cells: (row, column, height, width)."""
    keys = [[(cell.fill, cell.group) for cell in row] for row in cells]
    done: set[tuple[int, int]] = set()
    for r, row in enumerate(keys):
        for c, key in enumerate(row):
            if (r, c) in done:
                continue
            wide = next((i for i in range(1, len(row) - c) if row[c + i] != key or (r, c + i) in done), len(row) - c)
            below = len(keys) - r
            high = next((i for i in range(1, below) if keys[r + i][c : c + wide] != [key] * wide), below)
            done.update((r + i, c + j) for i in range(high) for j in range(wide))
            yield r, c, high, wide
