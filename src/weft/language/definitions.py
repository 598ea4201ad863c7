"""Where the definition of a function ends in the lines of its file."""

from __future__ import annotations

import ast
import inspect
import re
from types import CodeType

DEFINITION = re.compile(r"\s*(async\s+)?def\s")
"""The first line of a definition, below its decorators."""


def begins_at(lines: list[str], code: CodeType) -> bool:
    """Whether a definition begins in these lines where that of `code` does: with `def`, a decorator, or a lambda."""
    if len(lines) < code.co_firstlineno:
        return False
    first = lines[code.co_firstlineno - 1]
    return code.co_name == "<lambda>" or first.lstrip().startswith("@") or DEFINITION.match(first) is not None


def _last_line(code: CodeType) -> int:
    """The last line that any instruction of a function, or of one inside it, comes from."""
    last = max((line for _, _, line in code.co_lines() if line), default=code.co_firstlineno)
    return max([last, *(_last_line(c) for c in code.co_consts if isinstance(c, CodeType))])


def cut_definition(lines: list[str], code: CodeType) -> list[str]:
    """Cut the definition of `code` out of the lines of its file.

    It ends before the first line that stands no deeper than the definition and comes after the last line with code.
    Where such a line still belongs to it (a bracket or a string closed at the margin), what is cut does not parse,
    and the tokenizer, twenty times slower, finds the end.
    """
    first = code.co_firstlineno - 1
    margin = len(lines[first]) - len(lines[first].lstrip())
    end = max(_last_line(code), first + 1)
    while end < len(lines):
        text = lines[end].lstrip()
        if text and len(lines[end]) - len(text) <= margin:
            break
        end += 1
    cut = lines[first:end]
    while len(cut) > 1 and not cut[-1].strip():
        cut.pop()
    try:
        ast.parse("if 1:\n" + "".join(cut) if margin else "".join(cut))
    except SyntaxError:
        return inspect.getblock(lines[first:])
    return cut
