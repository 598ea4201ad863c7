"""Grids as text: in colours where a terminal can show them, aligned in columns where it cannot."""

from __future__ import annotations

from .colours import RGB, ink
from .grid import Grid

__all__ = ["render_text"]

RESET = "\x1b[0m"


def _paint(text: str, fill: RGB, depth: int) -> str:
    front = 30 if ink(fill) == "#000000" else 97
    if depth == 24:
        return f"\x1b[{front};48;2;{fill[0]};{fill[1]};{fill[2]}m{text}{RESET}"
    r, g, b = (round(x / 255 * 5) for x in fill)
    return f"\x1b[{front};48;5;{16 + 36 * r + 6 * g + b}m{text}{RESET}"


def render_text(grid: Grid, colour: int = 0) -> str:
    """The grid as lines of text; `colour` is 0 (plain), 8 (256 colours) or 24 (true colour).

    With colours a cell shows the register and the colour the rest; plain, a cell shows everything.
    """
    texts = [[cell.short if colour else cell.full for cell in row] for row in grid.cells]
    width = max((len(t) for row in texts for t in row), default=1)
    width = max(width, max((len(n) for n in grid.column_names), default=1))
    side = max((len(n) for n in grid.row_names), default=0)
    lines = [grid.title, *(grid.short_legend if colour and grid.short_legend else grid.legend)]
    if colour and grid.swatches:
        lines.append(" ".join(_paint(f" {name} ", fill, colour) for name, fill in grid.swatches))
    lines.append("")
    gap = " "
    lines.append((" " * side + gap + gap.join(n.rjust(width) for n in grid.column_names)).rstrip())
    for name, row, cells in zip(grid.row_names, texts, grid.cells, strict=True):
        if colour:
            body = "".join(_paint(text.rjust(width) + gap, cell.fill, colour) for text, cell in zip(row, cells))
            lines.append(f"{name.rjust(side)}{gap}{body}")
        else:
            lines.append(f"{name.rjust(side)}{gap}{gap.join(text.rjust(width) for text in row)}")
    if grid.note:
        lines.append(f"({grid.note})")
    return "\n".join(lines)
