"""A function that is traced, and the compilation that it is traced in: what there is to know of them.

`Frame` (frame.py) is such a function with what its tracing does. What is here is enough for those who look names up and
find words for errors, which a frame does by them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from xdsl.ir import Attribute

from weft.base import CompilationError, CompileOptions, Note, Span
from weft.ir import Builder
from weft.language import core
from weft.language.callable import JITCallable

from .liveness import Liveness
from .returns import OpenBranch

UNKNOWN: Final = object()
"""The type of what a function returns before its first `return`."""


@dataclass(slots=True)
class Trace:
    """One compilation."""

    builder: Builder
    semantic: Any
    options: CompileOptions
    target: Any
    active: list[Traced] = field(default_factory=list)
    """The functions being traced, callers first."""
    liveness: dict[int, Liveness] = field(default_factory=dict)
    """Of each function that has loops or branches, by the identity of its body."""


class Traced:
    """One function being traced (`Frame`), as far as those have to know it who look things up and tell errors."""

    def __init__(self, trace: Trace, fn: JITCallable, scope: dict[str, Any], caller_loc: Attribute | None) -> None:
        self.trace = trace
        self.builder = trace.builder
        self.semantic = trace.semantic
        self.fn = fn
        self.file = fn.file_name
        self.nonlocals = fn.nonlocals()
        self.scope = scope
        """The variables: name -> value of the language, or `Unavailable`."""
        self.arguments = dict(scope)
        """What the function was called with."""
        self.node: ast.AST = fn.parse().body[0]
        """What is being done: errors get its place."""
        self.loop_depth = 0
        """Loops (and `with` blocks) around the current statement: `return` cannot leave them."""
        self.loops: list[Any] = []
        """The loops (`carried.Carried`) around the current statement that run when the kernel does, outermost first."""
        self.guards: list[tuple[Any, bool]] = []
        """While debugging, the parts of `and` and `or` before the one that is evaluated: Python evaluates it only if
        all of `and` are true, all of `or` false. True with those of `and`."""
        self.opens: list[OpenBranch] = []
        """Ifs of the current region with one branch returned, outermost first."""
        self.returned: Any = None
        """What the path that returned last returns."""
        self.returned_at: ast.Return | None = None
        """The first `return` with a value."""
        self.ret_type: Any = UNKNOWN
        """The type of what the function returns, None for nothing; known from its first `return` on."""
        self.constexpr_nodes: dict[str, ast.AST] = {}
        """The statements that defined the names annotated as constexpr."""
        self.declared: set[str] = set()
        """Names annotated as constexpr before they have a value: what they are assigned stays known."""
        self._caller_loc = caller_loc
        self._evaluated: dict[ast.AST, Any] = {}
        """The first part of the expression being evaluated, where it is deep."""

    def eval(self, node: ast.expr) -> Any:
        """The value of an expression."""
        raise NotImplementedError

    def error(
        self,
        message: str,
        node: ast.AST | None = None,
        *,
        kind: type[CompilationError] = CompilationError,
        like: type[Exception] = ValueError,
        notes: Sequence[Note] = (),
        hint: str | None = None,
    ) -> CompilationError:
        """An error at a node (at the current one), to be raised; `like` is what Python would raise in its place."""
        types = [getattr(v, "type", None) for v in self.scope.values()]
        ways = [t.way_out for t in types if isinstance(t, core.base_type) and t.way_out and str(t) in message]
        hint = ways[0] if ways else hint or self.way_out(message, node)
        error = kind(message, self.span(node), source_line=self.source_line(node), notes=notes, hint=hint)
        return error.likened(like)

    def way_out(self, message: str, node: ast.AST | None) -> str | None:
        """What can be done about an error at a node; None where nobody knows."""
        raise NotImplementedError

    # -- places --------------------------------------------------------------------------------------------------

    def span(self, node: ast.AST | None = None) -> Span:
        """The place of a node (of the current one) in the user's file."""
        at: Any = node if node is not None and hasattr(node, "lineno") else self.node
        if isinstance(at, ast.FunctionDef):  # its name, not its whole body
            start = at.col_offset + len("def ")
            return Span(self.file, at.lineno, start, at.lineno, start + len(at.name))
        return Span(self.file, at.lineno, at.col_offset, at.end_lineno, at.end_col_offset)

    def source_line(self, node: ast.AST | None = None) -> str | None:
        """The source line that a node begins on."""
        return self.fn.source_line(self.span(node).line)

    def note(self, message: str, node: ast.AST | None = None) -> Note:
        """A remark about a node."""
        return Note(message, self.span(node), self.source_line(node))
