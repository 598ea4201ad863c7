"""Where what stands at a place of the source ends, for editors that mark it: from the tokens that follow.

A remark knows where its operation begins. Meant is the longest chain of names, calls and subscripts there, as
`tl.load(x)[:, None]`; where none begins, as at `for`, the rest of the line is meant.

>>> Ends({"k.py": ["y = tl.load(x) + 1"]}).of("k.py", 1, 5)
(1, 15)
>>> Ends({"k.py": ["for i in range(9):"]}).of("k.py", 1, 1)
(1, 19)
"""

from __future__ import annotations

import keyword
import linecache
import tokenize
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Ends", "with_ends"]

OPENING, CLOSING = "([{", ")]}"


class Ends:
    """The ends of what begins somewhere; lines and columns count from one, columns in bytes of UTF-8."""

    def __init__(self, sources: Mapping[str, Sequence[str]] | None = None) -> None:
        self._sources = dict(sources or {})
        self._found: dict[tuple[str, int, int], tuple[int, int] | None] = {}

    def of(self, file: str, line: int, column: int) -> tuple[int, int] | None:
        """The line and the column behind it; None where the source is not to be had."""
        key = (file, line, column)
        if key not in self._found:
            lines = self._sources.setdefault(file, [text.rstrip("\n") for text in linecache.getlines(file)])
            self._found[key] = _end(lines[line - 1 :], line, column) if 0 < line <= len(lines) else None
        return self._found[key]


def _end(lines: Sequence[str], line: int, column: int) -> tuple[int, int]:
    """The end of what begins in the first of some lines, which is line `line` of its file."""
    start = len(lines[0].encode()[: column - 1].decode(errors="replace"))
    row, end = _chain(lines, start) or (1, len(lines[0]))
    return line + row - 1, len(lines[row - 1][:end].encode()) + 1


def _chain(lines: Sequence[str], start: int) -> tuple[int, int] | None:
    """The row, from one, and the column behind a chain that begins in a column of the first row; None if none does."""
    rest = (text + "\n" for text in (lines[0][start:], *lines[1:]))
    depth, end, before = 0, None, ""
    try:
        for token in tokenize.generate_tokens(lambda: next(rest, "")):
            goes_on = token.string in ("(", "[", ".") or (end is not None and depth == 0 and before == ".")
            if depth == 0 and (not goes_on if end is not None else keyword.iskeyword(token.string)):
                return end
            if token.type not in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP) and not depth:
                return end
            depth += (token.string in OPENING) - (token.string in CLOSING)
            if not depth:
                row, column = token.end
                end = (row, column + start if row == 1 else column)
            before = token.string
    except (tokenize.TokenError, SyntaxError):
        pass
    return end


def with_ends(plain: Any, ends: Ends | None = None) -> Any:
    """Plain data in which each place has `end_line` and `end_column` as well, where its source can be found."""
    ends = ends or Ends()
    if isinstance(plain, list):
        return [with_ends(each, ends) for each in plain]
    if not isinstance(plain, dict):
        return plain
    made = {name: with_ends(each, ends) for name, each in plain.items()}
    if {"file", "line", "column"} == made.keys():
        end = ends.of(made["file"], made["line"], made["column"])
        if end is not None:
            made["end_line"], made["end_column"] = end
    return made
