"""Statements without control flow: assignments, expressions, assertions, `with`.

An assignment makes a value of the kernel's run: `n = 4` is a scalar tensor.  What is to stay known at compile time
is annotated, `n: tl.constexpr = 4`.
"""

from __future__ import annotations

import ast
import builtins
from types import ModuleType
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr

from weft.base import CompilationError, UnsupportedLanguageConstruct
from weft.language import core

from .bindings import as_variable, assign, bind_variable
from .calls import call, evaluate_call
from .expressions import apply_binary, binary_entry
from .frame import Frame, runs
from .values import describe, map_tuple, unwrap


@runs(ast.Assign)
def _assign(frame: Frame, node: ast.Assign) -> bool:
    value = frame.eval(node.value)
    if frame.declared:
        frame.at(node)
        for target in node.targets:
            bind_variable(frame, target, value)
        return False
    if type(value) is not core.tensor:
        frame.at(node)
        value = as_variable(frame, value)
    for target in node.targets:
        assign(frame, target, value)
    return False


@runs(ast.AugAssign)
def _aug_assign(frame: Frame, node: ast.AugAssign) -> bool:
    target = node.target
    if not isinstance(target, ast.Name):
        assign(frame, target, None)  # says what is wrong with it
    assert isinstance(target, ast.Name)
    left = frame.lookup(target)
    right = frame.eval(node.value)
    frame.at(node)
    value = apply_binary(frame, binary_entry(frame, node.op), left, right)
    assign(frame, target, as_variable(frame, value))
    return False


def _is_constexpr_annotation(frame: Frame, annotation: ast.expr) -> bool:
    """Whether an annotation is `tl.constexpr`, also as a string; other annotations mean nothing, if they are there."""
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str) and annotation.value.rpartition(".")[2] == "constexpr"
    try:
        return unwrap(frame.eval(annotation)) is core.constexpr
    except CompilationError:
        if _is_there(frame, annotation):
            return False
        raise


def _is_there(frame: Frame, annotation: ast.expr) -> bool:
    """Whether the names in an annotation mean something; kernels may read less than annotations do."""
    spaces = (frame.scope, frame.nonlocals, frame.fn.__globals__, vars(builtins))
    for part in ast.walk(annotation):
        if isinstance(part, ast.Name) and not any(part.id in space for space in spaces):
            return False
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            value = next((space[part.value.id] for space in spaces if part.value.id in space), None)
            if isinstance(value, ModuleType) and not hasattr(value, part.attr):
                return False
    return True


@runs(ast.AnnAssign)
def _ann_assign(frame: Frame, node: ast.AnnAssign) -> bool:
    if node.value is None:
        if isinstance(node.target, ast.Name) and _is_constexpr_annotation(frame, node.annotation):
            frame.declared.add(node.target.id)
        return False
    value = frame.eval(node.value)
    frame.at(node)
    if _is_constexpr_annotation(frame, node.annotation) and isinstance(node.target, ast.Name):
        name = node.target.id
        if name in frame.scope and frame.constexpr_nodes.get(name) is not node:
            raise frame.error(
                f"{name} is already defined. constexpr cannot be reassigned.", node.target, hint="use another name"
            )
        frame.constexpr_nodes[name] = node
        if isinstance(node.value, ast.Call):
            value = _known_result(value)
        frame.scope[name] = value if isinstance(value, core.base_value) else core.constexpr(value)
        return False
    bind_variable(frame, node.target, value)
    return False


def _known_result(value: Any) -> Any:
    """What a function returned, as a constexpr where it is a number that it returned on its only path."""
    if isinstance(value, core.tuple):
        return map_tuple(value, _known_result)
    if type(value) is core.tensor and not value.type.is_block() and isinstance(value.handle.owner, arith.ConstantOp):
        constant = value.handle.owner.value
        if isinstance(constant, IntegerAttr):
            bits = constant.value.data
            if value.type.is_int_unsigned():
                bits %= 1 << value.type.int_bitwidth
            return core.constexpr(bool(bits) if value.type.is_int1() else bits)
        if isinstance(constant, FloatAttr):
            return core.constexpr(constant.value.data)
    return value


@runs(ast.Expr)
def _expr(frame: Frame, node: ast.Expr) -> bool:
    if isinstance(node.value, ast.Call):
        evaluate_call(frame, node.value, unused=True)
    elif not isinstance(node.value, ast.Constant):
        frame.eval(node.value)
    return False


@runs(ast.Pass)
def _pass(frame: Frame, node: ast.Pass) -> bool:
    return False


@runs(ast.Assert)
def _assert(frame: Frame, node: ast.Assert) -> bool:
    test = frame.eval(node.test)
    message = frame.eval(node.msg) if node.msg is not None else core.constexpr("")
    frame.at(node)
    call(frame, core.device_assert, [test, message], {})
    return False


@runs(ast.With)
def _with(frame: Frame, node: ast.With) -> bool:
    managers = []
    for item in node.items:
        expression = item.context_expr
        if not isinstance(expression, ast.Call):
            raise frame.error(
                "the context manager of a `with` must be a call", expression, kind=UnsupportedLanguageConstruct
            )
        fn = unwrap(frame.eval(expression.func))
        args = [frame.eval(a) for a in expression.args]
        kwargs = {str(k.arg): frame.eval(k.value) for k in expression.keywords}
        frame.at(expression)
        manager = fn(*args, _semantic=frame.semantic, **kwargs)
        if not (hasattr(manager, "__enter__") and hasattr(manager, "__exit__")):
            raise frame.error(f"{describe(manager)} is not a context manager", expression)
        managers.append((manager, item))
    for manager, item in managers:
        entered = manager.__enter__()
        if item.optional_vars is not None:
            assign(frame, item.optional_vars, entered)
    frame.loop_depth += 1
    try:
        frame.run(node.body)
    finally:
        frame.loop_depth -= 1
    frame.at(node)
    for manager, _ in reversed(managers):
        manager.__exit__(None, None, None)
    return False
