"""Where something stands in the user's source.

A span is what every diagnostic, every operation of the IR and every device assertion carries.  Lines count from
one and columns from zero, as in Python's `ast`; texts shown to people count columns from one, as editors do.

>>> span = Span("kernel.py", 14, 10, 14, 22)
>>> str(span)
'kernel.py:14:11'
>>> caret_line("    acc = tl.dot(a, b)", span)
'          ^^^^^^^^^^^^'
"""

from __future__ import annotations

import linecache
import unicodedata
from dataclasses import dataclass

__all__ = ["Span", "caret_line"]


@dataclass(frozen=True, slots=True)
class Span:
    """A range of source text: from `line`, `col` up to, not including, `end_line`, `end_col`."""

    file: str
    line: int
    col: int
    end_line: int | None = None
    end_col: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col + 1}"

    def source_line(self) -> str | None:
        """The line of source that the span begins on, or None where the source cannot be found."""
        return linecache.getline(self.file, self.line).rstrip("\n") or None


def _width(text: str) -> int:
    """How many terminal cells `text` takes: wide East Asian characters take two."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in text)


def caret_line(source_line: str, span: Span) -> str:
    """The line of carets to print under `source_line`.

    `ast` counts columns in UTF-8 bytes; they become characters, then terminal cells.  Tabs are kept, so that the
    carets line up whatever a tab's width is.  A span of several lines is underlined to the end of its first.
    """
    raw = source_line.encode("utf-8")
    before = raw[: max(span.col, 0)].decode("utf-8", "replace")
    last = len(raw)
    if span.end_col is not None and (span.end_line is None or span.end_line == span.line):
        last = min(last, span.end_col)
    elif span.end_col is None:
        last = span.col + 1
    under = raw[span.col : last].decode("utf-8", "replace").rstrip()
    pad = "".join("\t" if c == "\t" else " " * _width(c) for c in before)
    return pad + "^" * max(1, _width(under))
