"""What a function refers to: the names that it reads before it has bound them, and where their values stand."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING: Final = _Missing()
"""Stands for "no such name"."""


class Cells:
    """The variables that a function captures from the functions around it, as they are now; asked like a dict."""

    def __init__(self, fn: Any):
        names = fn.__code__.co_freevars if isinstance(fn, FunctionType) else ()
        self._cells = dict(zip(names, fn.__closure__ or (), strict=True)) if names else {}

    def get(self, name: str, default: Any) -> Any:
        """The value of a variable, or `default` if it has none."""
        try:
            return self._cells[name].cell_contents
        except (KeyError, ValueError):  # ValueError: not yet assigned, or deleted
            return default


Scope = dict[str, Any] | Cells
"""Where a name stands: the dictionary of a module, or what a function captures from those around it."""


class FindReferences:
    """Collect the names a function reads before it has surely bound them, in order: `a`, `module.f`, `module.sub.N`.

    What only one branch or a loop binds may be without a value after it, and what a comprehension binds is gone after
    it: a name that is read there may be one from outside. `assigned` has the names that the function sets anywhere.

    With a stack of its own: a long sum or a long chain of `elif` is a syntax tree as deep as it is long.
    """

    def __init__(self) -> None:
        self.paths: dict[tuple[str, ...], None] = {}
        self.assigned: set[str] = set()
        self._bound: set[str] = set()
        self._added: list[set[str]] = []
        """For each part that is open, of a branch or a loop, the names that it has bound."""
        self._left = False
        """Whether control does not come to the end of the part that is open."""

    def visit(self, root: ast.AST) -> None:
        """Look at a node and all that is in it, in the order in which it happens."""
        stack: list[ast.AST | Callable[[], None]] = [root]
        while stack:
            node = stack.pop()
            if not isinstance(node, ast.AST):
                node()
            elif isinstance(node, ast.Name):
                self._name(node)
            elif isinstance(node, ast.Attribute):
                stack += self._attribute(node)
            else:
                stack += reversed(self._parts(node))

    def _parts(self, node: ast.AST) -> list[ast.AST | Callable[[], None]]:
        """The parts of a node, in the order in which they happen."""
        match node:
            case ast.FunctionDef(args=a):
                # Defaults, annotations and decorators were evaluated when the function was defined.
                for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
                    self._bound.add(arg.arg)
                return [*node.body]
            case ast.Assign(value=value, targets=targets):
                return [value, *targets]
            case ast.NamedExpr(value=value, target=target):
                return [value, target]
            case ast.AugAssign(target=target, value=value):
                read = [ast.Name(target.id, ast.Load())] if isinstance(target, ast.Name) else []
                return [*read, value, target]
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                return [annotation] if value is None else [value, annotation, target]
            case ast.If(test=test, body=body, orelse=orelse):
                return [test, *self._branches([*body], [*orelse])]
            case ast.IfExp(test=test, body=chosen, orelse=other):
                return [test, *self._branches([chosen], [other])]
            case ast.BoolOp(values=[first, *rest]):
                return [first, *self._apart(*rest)]
            case ast.For():
                return [node.iter, *self._apart(node.target, *node.body), *self._apart(*node.orelse)]
            case ast.While():
                return [node.test, *self._apart(*node.body), *self._apart(*node.orelse)]
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                outer, *inner = node.generators
                elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                loops = [part for g in inner for part in (g.iter, g.target, *g.ifs)]
                return [outer.iter, *self._apart(outer.target, *outer.ifs, *loops, *elements)]
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return [*ast.iter_child_nodes(node), self._leave]
        return list(ast.iter_child_nodes(node))

    def _apart(self, *parts: ast.AST) -> list[ast.AST | Callable[[], None]]:
        """What may not happen: afterwards, nothing that it binds is surely bound."""
        return [self._open, *parts, self._drop] if parts else []

    def _branches(self, body: list[ast.AST], other: list[ast.AST]) -> list[ast.AST | Callable[[], None]]:
        """Two ways, of which one is taken: afterwards, what both bind is bound, or the one that comes to its end."""
        ends: list[tuple[set[str], bool]] = []

        def end() -> None:
            left = self._left
            ends.append((self._close(), left))

        def join() -> None:
            (first, first_left), (second, second_left) = ends
            for name in second if first_left else first if second_left else first & second:
                self._bind(name)
            self._left = first_left and second_left

        return [self._open, *body, end, self._open, *other, end, join]

    def _open(self) -> None:
        self._added.append(set())
        self._left = False

    def _close(self) -> set[str]:
        added = self._added.pop()
        self._bound -= added
        self._left = False
        return added

    def _drop(self) -> None:
        self._close()

    def _leave(self) -> None:
        self._left = True

    def _bind(self, name: str) -> None:
        if name not in self._bound:
            self._bound.add(name)
            if self._added:
                self._added[-1].add(name)

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id not in self._bound:
                self.paths[(node.id,)] = None
        elif isinstance(node.ctx, ast.Store):
            self.assigned.add(node.id)
            self._bind(node.id)

    def _attribute(self, node: ast.Attribute) -> list[ast.AST]:
        path = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            path.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            return [value]
        if value.id not in self._bound:
            self.paths[(value.id, *reversed(path))] = None
        return []
