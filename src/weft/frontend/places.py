"""Where Triton says an error is: line and column within the function, as in `at 2:4:`, counted from its `def`."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache

from weft.base import Span


@lru_cache(maxsize=32)
def _functions(source: str) -> tuple[tuple[str, int, int, int], ...]:
    """(name, first line, last line, indentation) of every function in a source."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ()
    return tuple(
        (node.name, node.lineno, node.end_lineno or node.lineno, node.col_offset)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def place_in_function(span: Span) -> str | None:
    """The line Triton would begin its message with, for a place in a file that can be read."""
    around = [f for f in _functions("".join(linecache.getlines(span.file))) if f[1] <= span.line <= f[2]]
    if not around:
        return None
    name, first, _, indentation = max(around, key=lambda f: f[1])
    return f"at {span.line - first + 1}:{span.col - indentation}: in {name}"
