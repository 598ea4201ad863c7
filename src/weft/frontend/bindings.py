"""Names and what they are bound to: targets of assignments, `:=`, the variables of comprehensions."""

from __future__ import annotations

import ast
from typing import Any

from weft.base import UnsupportedLanguageConstruct
from weft.language import core

from .expressions import sequence
from .frame import Frame, evaluates
from .values import describe, map_tuple, name_value, unwrap

_NUMBERS = (bool, int, float)


def as_variable(frame: Frame, value: Any) -> Any:
    """What a variable holds after it is assigned `value`: numbers become scalar tensors."""
    if type(value) is core.tensor:
        return value
    if isinstance(value, core.tuple):
        return map_tuple(value, lambda v: as_variable(frame, v))
    if isinstance(value, core.constexpr):
        inner = value.value
        if isinstance(inner, _NUMBERS):
            return frame.semantic.to_tensor(inner)
        if inner is None or isinstance(inner, core.dtype):
            return inner
    elif isinstance(value, _NUMBERS):
        return frame.semantic.to_tensor(value)
    return value


def _unpacked(frame: Frame, target: ast.Tuple | ast.List, value: Any) -> list[Any]:
    """A value for each target; errors in Python's words."""
    if any(isinstance(part, ast.Starred) for part in target.elts):
        raise frame.error(
            "starred assignment targets are not supported in a kernel",
            target,
            kind=UnsupportedLanguageConstruct,
            hint="take a slice of the tuple",
        )
    if not isinstance(value, core.tuple) and not isinstance(unwrap(value), (tuple, list, range)):
        raise frame.error(f"cannot unpack non-iterable value {describe(value)}: only tuples can be", target)
    values, wanted = sequence(frame, value, target, "unpack"), len(target.elts)
    if len(values) > wanted:
        raise frame.error(f"too many values to unpack (expected {wanted}, got {len(values)})", target)
    if len(values) < wanted:
        raise frame.error(f"not enough values to unpack (expected {wanted}, got {len(values)})", target)
    return values


def assign(frame: Frame, target: ast.expr, value: Any) -> None:
    """Bind a target, a name or a tuple of targets, to a value."""
    if isinstance(target, ast.Name):
        name_value(value, target.id)
        frame.scope[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part, item in zip(target.elts, _unpacked(frame, target, value), strict=True):
            assign(frame, part, item)
    elif isinstance(target, ast.Attribute):
        raise frame.error(
            "an attribute cannot be assigned to in a kernel",
            target,
            kind=UnsupportedLanguageConstruct,
            hint="make a new value of the class",
        )
    else:
        raise frame.error(
            "an element cannot be assigned to: tiles are values (__setitem__ is not supported)",
            target,
            kind=UnsupportedLanguageConstruct,
            hint="use tl.where to change elements, tl.store to write to memory",
        )


def bind_variable(frame: Frame, target: ast.expr, value: Any) -> None:
    """Assign as a statement does: numbers become scalar tensors, but for names that are declared constexpr."""
    if isinstance(target, (ast.Tuple, ast.List)) and frame.declared:
        for part, item in zip(target.elts, _unpacked(frame, target, value), strict=True):
            bind_variable(frame, part, item)
    elif isinstance(target, ast.Name) and target.id in frame.declared:
        assign(frame, target, value if isinstance(value, core.base_value) else core.constexpr(value))
    else:
        assign(frame, target, as_variable(frame, value))


@evaluates(ast.NamedExpr)
def _named(frame: Frame, node: ast.NamedExpr) -> Any:
    value = frame.eval(node.value)
    frame.at(node)
    bind_variable(frame, node.target, value)
    return frame.scope[node.target.id]


def refuse_named(frame: Frame, node: ast.expr, where: str) -> None:
    """An error if an expression assigns by `:=` where the name would have no value afterwards."""
    for part in ast.walk(node):
        if isinstance(part, ast.NamedExpr):
            raise frame.error(
                f"`:=` cannot be used in {where}",
                part,
                kind=UnsupportedLanguageConstruct,
                hint="assign in a statement of its own",
            )


@evaluates(ast.ListComp)
def _list_comp(frame: Frame, node: ast.ListComp) -> Any:
    if len(node.generators) != 1:
        raise frame.error(
            "a comprehension with several `for` cannot be used in a kernel", node, kind=UnsupportedLanguageConstruct
        )
    generator = node.generators[0]
    refuse_named(frame, node, "a comprehension")
    items = sequence(frame, frame.eval(generator.iter), generator.iter, "iterate over")
    outer = frame.scope
    results = []
    for item in items:
        frame.scope = dict(outer)
        assign(frame, generator.target, item)
        if all(_keeps(frame, condition) for condition in generator.ifs):
            value = frame.eval(node.elt)
            results.append(value if isinstance(value, core.base_value) else core.constexpr(value))
    frame.scope = outer
    return core.tuple(results)


def _keeps(frame: Frame, node: ast.expr) -> bool:
    condition = frame.eval(node)
    if isinstance(condition, core.base_value) and not isinstance(condition, core.constexpr):
        raise frame.error("the condition of a comprehension must be known at compile time", node)
    return bool(unwrap(condition))
