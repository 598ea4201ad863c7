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


class FindReferences(ast.NodeVisitor):
    """Collect the names a function reads before it has bound them, in order: `a`, `module.f`, `module.sub.CONST`."""

    def __init__(self) -> None:
        self.bound: set[str] = set()
        self.found: dict[tuple[str, ...], None] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        # Defaults, annotations and decorators were evaluated when the function was defined.
        a = node.args
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
            self.bound.add(arg.arg)
        for statement in node.body:
            self.visit(statement)

    def _value_first(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            self.visit_Name(ast.Name(node.target.id, ast.Load()))
        if node.value is not None:
            self.visit(node.value)
        if isinstance(node, ast.AnnAssign):
            self.visit(node.annotation)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            self.visit(target)

    visit_Assign = visit_AnnAssign = visit_AugAssign = _value_first

    def visit_For(self, node: ast.For) -> None:
        self.visit(node.iter)
        self.visit(node.target)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def _comprehension(self, node: Any) -> None:
        for generator in node.generators:
            self.visit(generator.iter)
            self.visit(generator.target)
            for condition in generator.ifs:
                self.visit(condition)
        self.generic_visit(node)

    visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = _comprehension

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            if node.id not in self.bound:
                self.found[(node.id,)] = None
        else:
            self.bound.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = [node.attr]
        value = node.value
        while isinstance(value, ast.Attribute):
            path.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            self.visit(value)
        elif value.id not in self.bound:
            self.found[(value.id, *reversed(path))] = None
