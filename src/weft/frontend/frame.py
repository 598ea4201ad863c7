"""A function while its body is traced: its variables, the place in its source, the ifs it is inside of.

Tracing runs the function's syntax tree once: an expression becomes a value of the language (`Frame.eval`), a
statement changes the frame (`Frame.run`).  What each kind of node does stands in a table, filled by the decorators
`evaluates` and `runs` in the files of this folder; a kind that is not in its table is not part of the language.

    Trace      one compilation: the builder, the semantic, the options, the functions being traced
    Frame      one function of it; a call of a jit function traces the callee, in a frame of its own, at the same place

Whatever goes wrong gets the place of `Frame.node`, so whoever does something that can fail first calls `Frame.at`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from xdsl.ir import Attribute

from weft.base import CompilationError, Note, registry
from weft.ir import call_site_loc, file_loc
from weft.language import core
from weft.language.callable import MISSING, JITCallable

from .arguments import bind
from .failures import diagnose
from .liveness import Liveness
from .names import lookup_global, undefined_name
from .returns import close_returned
from .traced import UNKNOWN, Trace, Traced
from .unset import Maybe
from .unsupported import unsupported_syntax
from .values import same_value
from .ways import way_out

__all__ = ["EVALUATORS", "RUNNERS", "Frame", "Trace", "Unavailable", "evaluates", "runs"]

Evaluator = Callable[["Frame", Any], Any]
Runner = Callable[["Frame", Any], bool]

EVALUATORS: Final[dict[type[ast.AST], Evaluator]] = {}
"""What each kind of expression means: (frame, node) -> value."""

RUNNERS: Final[dict[type[ast.AST], Runner]] = {}
"""What each kind of statement does: (frame, node) -> whether every path through it has returned."""

FIRST: Final[dict[type[ast.AST], str]] = {
    ast.Attribute: "value",
    ast.BinOp: "left",
    ast.Call: "func",
    ast.Compare: "left",
    ast.Subscript: "value",
}
"""The part of an expression that its evaluator evaluates first: a long sum, or a chain of methods, is deep in these."""

DEEP: Final = 20
"""How deep such parts are evaluated by recursion."""

MAX_CALL_DEPTH: Final = 100
"""How deep calls of jit functions may nest; recursion ends at compile time or not at all."""


evaluates = registry(EVALUATORS)
"""Registers the meaning of kinds of expressions."""


runs = registry(RUNNERS)
"""Registers the meaning of kinds of statements."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """What a name means where not every path has given it one value."""

    reason: str
    hint: str
    note: Note | Callable[[], Note | None] | None = None
    """Where it is set, or what finds that: it is seldom asked for, and takes time."""
    held: Any = None
    """What it holds nevertheless, with a zero on the paths that have not set it; None where that has no type."""
    error: CompilationError | None = None
    """What is said to whoever reads it, instead of the reason."""

    def notes(self) -> tuple[Note, ...]:
        """The note, if there is one."""
        note = self.note() if callable(self.note) else self.note
        return () if note is None else (note,)


class Frame(Traced):
    """One function being traced."""

    # -- tracing -----------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Any:
        """The value of an expression."""
        if self._evaluated and node in self._evaluated:
            return self._evaluated.pop(node)
        kind = type(node)
        if kind in FIRST:
            self._eval_first(node)
        evaluator = EVALUATORS.get(kind)
        if evaluator is None:
            raise unsupported_syntax(node, self.span(node), self.source_line(node))
        return evaluator(self, node)

    def _eval_first(self, node: ast.expr) -> None:
        """Evaluate the part of an expression that comes first, and before it the first part of that, if these are
        many: not by recursion, so that a sum may be as long as Python takes it."""
        parts = []
        part = node
        while (name := FIRST.get(type(part))) is not None:
            part = getattr(part, name)
            parts.append(part)
        if len(parts) < DEEP:
            return
        try:
            for part in reversed(parts):
                evaluator = EVALUATORS.get(type(part))
                if evaluator is None:
                    raise unsupported_syntax(part, self.span(part), self.source_line(part))
                self._evaluated[part] = evaluator(self, part)
        except BaseException:
            self._evaluated.clear()  # some errors are caught, and the expression evaluated again
            raise

    def run(self, statements: Sequence[ast.stmt]) -> bool:
        """Trace statements; true if every path has returned (what follows is dead and not traced)."""
        for node in statements:
            runner = RUNNERS.get(type(node))
            if runner is None:
                raise unsupported_syntax(node, self.span(node), self.source_line(node))
            if runner(self, node):
                return True
        return False

    def at(self, node: ast.AST) -> None:
        """From now on, operations and errors belong to `node`."""
        self.node = node
        loc: Attribute = file_loc(self.file, node.lineno, node.col_offset)  # type: ignore[attr-defined]
        if self._caller_loc is not None:
            loc = call_site_loc(loc, self._caller_loc)
        self.builder.loc = loc

    def trace_body(self) -> Any:
        """Trace the whole function where the builder stands; gives what it returns, None for nothing."""
        definition: Any = self.fn.parse().body[0]
        done = self.run(definition.body)
        value = self.returned if done else None
        if self.opens:
            value = close_returned(self.builder, self.opens, value, None if self.returns_nothing else self.ret_type)
        return value

    @property
    def liveness(self) -> Liveness:
        """Which variables of the function are read later."""
        definition: Any = self.fn.parse().body[0]
        body: list[ast.stmt] = definition.body
        liveness = self.trace.liveness.get(id(body))
        if liveness is None:
            liveness = self.trace.liveness[id(body)] = Liveness(body)
        return liveness

    def is_constant(self, name: str) -> bool:
        """Whether a variable is annotated as constexpr, as a parameter or where it is defined."""
        if name in self.constexpr_nodes or name in self.declared:
            return True
        names = self.fn.arg_names
        return name in names and names.index(name) in self.fn.constexprs

    @property
    def returns_nothing(self) -> bool:
        """Whether no `return` with a value was traced."""
        return self.ret_type is UNKNOWN or self.ret_type is None

    def set_return_type(self, kind: Any) -> bool:
        """Note the type of a `return`; false if another one returned another type."""
        if self.ret_type is UNKNOWN:
            self.ret_type = kind
        return (self.ret_type is None) == (kind is None) and bool(self.ret_type == kind)

    # -- names -------------------------------------------------------------------------------------------------

    def lookup(self, node: ast.Name) -> Any:
        """What a name means here."""
        name = node.id
        value = self.scope.get(name, MISSING)
        if value is MISSING:
            value = lookup_global(self, name, node)
            if value is MISSING:
                raise undefined_name(self, name, node)
        elif type(value) is Unavailable:
            if value.error is not None:
                raise value.error
            reason = f"`{name}` may have no value here: {value.reason}"
            raise self.error(reason, node, notes=value.notes(), hint=value.hint)
        elif type(value) is Maybe:
            self.at(node)
            text = f"`{name}` has no value: {value.type.reason}"
            holds = core.tensor(value.is_set, core.int1)
            for part, of_and in self.guards:
                left_out = self.semantic.not_(part) if of_and else part
                holds = self.semantic.logical_or(holds, left_out)
            core.device_assert(holds, text, _semantic=self.semantic)
            return value.value
        return value

    # -- diagnostics -------------------------------------------------------------------------------------------

    def way_out(self, message: str, node: ast.AST | None) -> str | None:
        """What can be done about an error at a node; None where nobody knows."""
        return way_out(self, message, node)

    # -- calls of jit functions --------------------------------------------------------------------------------

    def call_JitFunction(self, fn: JITCallable, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Trace a jit function here, with these values as its arguments; the value that it returns, or None.

        Builtins that take a function (`tl.reduce`, ...) get the frame as `_generator`, for this method.
        """
        builder, trace = self.builder, self.trace
        call_loc = builder.loc
        scope = bind(fn, list(args), kwargs or {})
        self._check_recursion(fn, scope)
        self.semantic.unroll(
            f"this call of `{fn.__name__}` makes its body once more", 1, "call it in a loop made by range"
        )
        frame = Frame(trace, fn, scope, call_loc)
        frame.guards = self.guards
        trace.active.append(frame)
        try:
            return frame.trace_body()
        except Exception as error:
            failure = diagnose(frame, error)
            if isinstance(failure, CompilationError):
                failure.with_note(self.note(f"called from here, in `{self.fn.__name__}`"))
            if failure is error:
                raise
            raise failure from error
        finally:
            trace.active.pop()
            builder.loc = call_loc

    def _check_recursion(self, fn: JITCallable, scope: dict[str, Any]) -> None:
        active = self.trace.active
        if len(active) >= MAX_CALL_DEPTH:
            raise self.error(
                f"calls nest more than {MAX_CALL_DEPTH} deep, the last one of `{fn.__name__}`",
                hint="a kernel has no stack: recursion must end on compile-time values; write a loop",
            )
        for frame in active:
            if frame.fn is fn and _same_arguments(frame, scope):
                raise self.error(
                    f"`{fn.__name__}` calls itself with arguments of the same types and compile-time values, "
                    "which would never end",
                    hint="a kernel has no stack: recursion must end on compile-time values; write a loop",
                )


def _same_arguments(frame: Traced, scope: dict[str, Any]) -> bool:
    """Whether a call with these arguments would be traced like the one in `frame`."""
    for name in frame.fn.arg_names:
        old, new = frame.arguments.get(name), scope.get(name)
        if isinstance(old, core.constexpr) or isinstance(new, core.constexpr):
            if not same_value(old, new):
                return False
        elif getattr(old, "type", None) != getattr(new, "type", None):
            return False
    return True
