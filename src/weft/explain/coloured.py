"""An explanation on a terminal in colours, by `rich` where it is installed (the extra `cli`).

    rich.print(e)                  # it is made here
    shown([e])                     # as `weft explain` does: False where the plain text has to do

What is not a terminal gets no colours, and no text other than the plain one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from .record import Explanation, Finding
from .text import gain_text, heading_text, occupancy_text, tables_of

__all__ = ["rich_view", "shown"]

SOURCE = "source"
NUMBER = re.compile(r"[\d.,]+[kMGT]?|-")
PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (1000, "k"))
LEAST_SOURCE = 20
GAP = 3
"""Cells between two columns."""
BAR = 24
"""Cells of the longest bar."""


def shown(explanations: Sequence[Explanation]) -> bool:
    """Print explanations in colours; whether that was done, which needs a terminal and `rich`."""
    if not sys.stdout.isatty():
        return False
    try:
        from rich.console import Console
    except ImportError:
        return False
    console = Console()
    for i, explanation in enumerate(explanations):
        if i:
            console.rule(style="dim")
        console.print(explanation)
    return True


def rich_view(e: Explanation, width: int) -> Any:
    """Something that `rich` prints in so many columns. ImportError without `rich`."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts = [_heading(e), _resources(e), *map(_finding, e.findings)]
    tables = [_table(title, rows, width) for title, rows in tables_of(e) if rows]
    occupancy = [Text(occupancy_text(e.occupancy))] if e.occupancy is not None else []
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts if part is not None), *tables, *occupancy)


def _heading(e: Explanation) -> Any:
    from rich.text import Text

    first, *rest = heading_text(e).splitlines()
    text = Text(first, "bold")
    for line in rest:
        style = "bold green" if line.startswith("time:") else "yellow" if line.startswith("note:") else "dim"
        text.append(f"\n{line}", style)
    return text


def _resources(e: Explanation) -> Any:
    """What each resource takes, as bars."""
    from rich.table import Table
    from rich.text import Text

    if e.time is None or not e.time.resources:
        return None
    most = max(e.time.microseconds, *e.time.resources.values())
    table = Table.grid(padding=(0, 1))
    for name, took in e.time.resources.items():
        is_bound = name == e.time.bound
        bar = Text("█" * max(1, round(BAR * took / most)), "dark_orange" if is_bound else "steel_blue")
        table.add_row(Text(name, "bold" if is_bound else ""), bar, f"{took:,.1f} us")
    return table


def _finding(finding: Finding) -> Any:
    from rich.text import Text

    place = f" on line {finding.span.line}" if finding.span is not None else ""
    gain = gain_text(finding)
    text = Text().append("▌", "dark_orange").append(finding.code, "bold")
    text.append(f"{place}{gain}\n", "dim")
    text.append(f"  {finding.what}: {finding.why}\n")
    text.append(f"  {finding.fix}", "green")
    return text


def _table(title: str, rows: Sequence[Sequence[str]], width: int) -> Any:
    """A table, without columns that are empty.

    Beside source the numbers are short, so that there is room for it; counters for which there is none are named below.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    head, *body = rows
    if SOURCE in head:
        body = [[short(cell) for cell in row] for row in body]
    kept = [i for i in range(len(head)) if any(row[i] for row in body)]
    kept.sort(key=lambda i: 0.5 if head[i] == SOURCE else i)  # beside its line
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    room = width
    if SOURCE in head:
        sizes = [LEAST_SOURCE if head[i] == SOURCE else _least(head[i], body, i) for i in kept]
        fitting = sum(sum(sizes[: n + 1]) + GAP * (n + 1) <= width for n in range(len(kept)))
        if fitting < len(kept):
            names = ", ".join(head[i] for i in kept[fitting:])
            table.caption, table.caption_justify = f"no room for: {names}", "left"
        kept, others = kept[:fitting], sum(sizes[:fitting]) - LEAST_SOURCE
        room = max(LEAST_SOURCE, width - others - GAP * fitting)
    for i in kept:
        if head[i] == SOURCE:
            table.add_column(SOURCE, header_style="dim", no_wrap=True, max_width=room, overflow="ellipsis")
            continue
        cells = [row[i] for row in body if row[i]]
        is_number = all(NUMBER.fullmatch(cell) for cell in cells)
        least = _least(head[i], body, i) if is_number or i == 0 else None  # no digit is left out
        justify: Any = "right" if is_number else "left"
        name = head[i].replace(" ", "\n") if least else head[i]
        table.add_column(name, justify=justify, header_style="dim", min_width=least, no_wrap=bool(least))
    for row in body:
        table.add_row(*(Text(row[i]) for i in kept))
    return table


def _least(name: str, body: Sequence[Sequence[str]], i: int) -> int:
    """The cells that a column takes if its name is broken between words."""
    return max(map(len, (*name.split(), *(row[i] for row in body))))


def short(text: str) -> str:
    """A large number in at most five characters.

    >>> short("33,554,432"), short("262,144"), short("9,216"), short("tl.load(x)")
    ('33.6M', '262k', '9,216', 'tl.load(x)')
    """
    digits = text.replace(",", "")
    if not digits.isdigit() or len(digits) < 6:
        return text
    number = int(digits)
    size, name = next(each for each in PREFIXES if number >= each[0])
    return f"{number / size:.{max(0, 3 - len(str(number // size)))}f}{name}"
