"""What a function refers to: the names that it reads before it has bound them, and where their values stand."""

from __future__ import annotations

import ast
from types import FunctionType
from typing import Any, Final

__all__ = ["MISSING", "Cells", "FindReferences", "Scope"]


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
    """Collect the names a function reads before it has bound them, in order: `a`, `module.f`, `module.sub.CONST`.

    With a stack of its own: a long sum or a long chain of `elif` is a syntax tree as deep as it is long.
    """

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.found: dict[tuple[str, ...], None] = {}

    def visit(self, root: ast.AST) -> None:
        """Look at a node and all that is in it, in the order in which it happens."""
        stack = [root]
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Name):
                self._name(node)
            elif isinstance(node, ast.Attribute):
                stack += self._attribute(node)
            else:
                stack += reversed(self._parts(node))

    def _parts(self, node: ast.AST) -> list[ast.AST]:
        """The parts of a node, in the order in which they happen."""
        match node:
            case ast.FunctionDef(args=a):
                # Defaults, annotations and decorators were evaluated when the function was defined.
                for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
                    self.bound.add(arg.arg)
                return [*node.body]
            case ast.Assign(value=value, targets=targets):
                return [value, *targets]
            case ast.AugAssign(target=target, value=value):
                read = [ast.Name(target.id, ast.Load())] if isinstance(target, ast.Name) else []
                return [*read, value, target]
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                return [*([value] if value is not None else []), annotation, target]
            case ast.For():
                return [node.iter, node.target, *node.body, *node.orelse]
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                first = [part for g in node.generators for part in (g.iter, g.target, *g.ifs)]
                return [*first, *ast.iter_child_nodes(node)]
        return list(ast.iter_child_nodes(node))

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.bound:
                self.found[(node.id,)] = None
        else:
            self.bound.add(node.id)

    def _attribute(self, node: ast.Attribute) -> list[ast.AST]:
        path = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            path.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            return [value]
        if value.id not in self.bound:
            self.found[(value.id, *reversed(path))] = None
        return []
