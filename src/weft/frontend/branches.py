"""`if`, the conditional expression, `and`, `or`, and `return`.

A condition known at compile time chooses: the other branch is not even traced.  A scalar of the kernel's run makes an
`scf.if`; both branches are traced, and a variable that they leave with different values becomes a result of it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from weft.base import CompilationError, Note, UnsupportedLanguageConstruct, warn_at
from weft.ir import hint_of
from weft.language import core
from weft.language.callable import MISSING

from .bindings import as_variable, refuse_named
from .calls import call
from .carried import unset
from .expressions import get_attribute
from .frame import Frame, Unavailable, evaluates, runs
from .returns import OpenBranch, close_flagged, close_returned, emit_if
from .unset import Maybe, MaybeType, maybe
from .values import describe, describe_type, flatten, map_tuple, same_value, snapshot, unflatten, unwrap, way_to

# Kinds of compile-time values that a condition can have.
_CONDITIONS = (bool, int, type(None))


def scalar_condition(frame: Frame, value: Any, node: ast.expr) -> SSAValue:
    """A condition of the kernel's run as an `i1`."""
    if value.type.is_block():
        if value.type.numel != 1:
            raise frame.error(
                f"the truth of a tensor of {value.type.numel} elements is ambiguous ({describe(value)})",
                node,
                kind=UnsupportedLanguageConstruct,
                hint="use tl.where to choose element by element, or reduce the condition to a scalar",
            )
        text = f"a condition is a tensor of one element; use ({ast.unparse(node)}).item()"
        warn_at(frame.span(node), text)
        value = core.item(value, _semantic=frame.semantic)
    result = value.to(core.int1, _semantic=frame.semantic)
    handle: SSAValue = result.handle
    return handle


def _static_condition(frame: Frame, value: Any, node: ast.expr) -> bool:
    inner = unwrap(value)
    if type(inner) not in _CONDITIONS:
        raise frame.error(
            f"a condition must be a scalar, a bool, an int or None, found {describe(value)}",
            node,
            kind=UnsupportedLanguageConstruct,
        )
    return bool(inner)


# -- if ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Branch:
    """One traced branch of a dynamic `if`."""

    node: ast.If
    statements: list[ast.stmt]
    block: Block
    """Where it begins."""
    end: Block
    """Where it falls through, or has returned."""
    scope: dict[str, Any]
    done: bool
    """Every path returned `value`."""
    value: Any
    opens: list[OpenBranch]


class _Waiting(NamedTuple):
    """A dynamic `if` of which the first branch is traced, and the second is being traced."""

    node: ast.If
    flag: SSAValue
    parent: Block
    before: dict[str, Any]
    then: _Branch
    otherwise: Block
    opens: list[OpenBranch]
    """What was open around it."""


@runs(ast.If)
def _if(frame: Frame, node: ast.If) -> bool:
    # A chain of `elif` is an `if` in the `else` of an `if`, and so on: gone down and up again without recursion.
    waiting: list[_Waiting] = []
    while True:
        statements = node.orelse
        condition = frame.eval(node.test)
        if isinstance(condition, core.tensor):
            waiting.append(_begin_if(frame, node, condition))
        elif _static_condition(frame, condition, node.test):
            statements = node.body
        if statements is node.body or len(statements) != 1 or not isinstance(statements[0], ast.If):
            break
        node = statements[0]
    done = frame.run(statements)
    for this in reversed(waiting):
        otherwise = _end_branch(frame, this.node, this.node.orelse, this.otherwise, this.opens, done)
        done = _end_if(frame, this, otherwise)
    return done


def _begin_if(frame: Frame, node: ast.If, condition: core.tensor) -> _Waiting:
    """Trace the first branch and begin the second."""
    frame.at(node.test)
    flag = scalar_condition(frame, condition, node.test)
    parent, before, opens = frame.builder.block, frame.scope, frame.opens
    assert parent is not None
    block = _begin_branch(frame, before)
    then = _end_branch(frame, node, node.body, block, opens, frame.run(node.body))
    return _Waiting(node, flag, parent, before, then, _begin_branch(frame, before), opens)


def _begin_branch(frame: Frame, before: dict[str, Any]) -> Block:
    block = Block()
    frame.builder.move_to_end(block)
    frame.scope = snapshot(before)
    frame.opens = []
    return block


def _end_branch(
    frame: Frame, node: ast.If, statements: list[ast.stmt], block: Block, opens: list[OpenBranch], done: bool
) -> _Branch:
    value = frame.returned if done else None
    if done and frame.opens:
        kind = None if frame.returns_nothing else frame.ret_type
        value = close_returned(frame.builder, frame.opens, value, kind)
    end = frame.builder.block
    assert end is not None
    branch = _Branch(node, statements, block, end, frame.scope, done, value, frame.opens)
    frame.opens = opens
    return branch


def _end_if(frame: Frame, this: _Waiting, otherwise: _Branch) -> bool:
    """Make the `scf.if`, or leave it open where one branch has returned; gives whether both have."""
    node, flag, parent, then = this.node, this.flag, this.parent, this.then
    frame.at(node)
    location = frame.builder.loc
    if then.done and otherwise.done:
        kind = None if frame.returns_nothing else frame.ret_type
        frame.builder.move_to_end(otherwise.end)
        opened = OpenBranch(parent, flag, then.block, otherwise.block, then.end, then.value, location)
        frame.returned = close_returned(frame.builder, [opened], otherwise.value, kind)
        return True
    if then.done or otherwise.done:
        returned, falls = (then, otherwise) if then.done else (otherwise, then)
        opened = OpenBranch(parent, flag, then.block, otherwise.block, returned.end, returned.value, location)
        frame.opens += [opened, *falls.opens]
        frame.builder.move_to_end(falls.end)
        frame.scope = falls.scope
        return False
    _merge(frame, node, parent, flag, this.before, then, otherwise)
    return False


def _merge(
    frame: Frame,
    node: ast.If,
    parent: Block,
    flag: SSAValue,
    before: dict[str, Any],
    then: _Branch,
    otherwise: _Branch,
) -> None:
    """Make the `scf.if` of two branches that fall through, and go on behind it."""
    builder, location = frame.builder, frame.builder.loc
    # Numbers known at compile time may have to become tensors: inside their branch.
    names, scope, doubts = _join(frame, node, before, then, otherwise)
    then_handles = flatten(then.scope[n] for n in names)
    else_handles = flatten(otherwise.scope[n] for n in names)
    kinds = [then.scope[n].type for n in names]
    if not (then.opens or otherwise.opens):
        builder.loc = location
        for branch, handles in ((then, then_handles), (otherwise, else_handles)):
            builder.move_to_end(branch.end)
            builder.create(scf.YieldOp, handles)
        empty = not node.orelse and not names and otherwise.block.first_op is otherwise.block.last_op
        results = emit_if(
            builder, parent, flag, then.block, None if empty else otherwise.block, [h.type for h in then_handles]
        )
        frame.scope = _bind_results(scope, names, kinds, results, doubts)
        return
    kind = None if frame.returns_nothing else frame.ret_type
    both = []
    for branch, handles in ((then, then_handles), (otherwise, else_handles)):
        builder.loc = location
        builder.move_to_end(branch.end)
        both.append(close_flagged(builder, branch.opens, handles, kind))
        builder.create(scf.YieldOp, both[-1])
    results = emit_if(builder, parent, flag, then.block, otherwise.block, [h.type for h in both[0]])
    returned_handles = results[1 : len(results) - len(then_handles)]
    returned = unflatten([kind], returned_handles)[0] if kind is not None else None
    frame.scope = _bind_results(scope, names, kinds, results[len(results) - len(then_handles) :], doubts)
    end, rest = Block(), Block()
    frame.opens.append(OpenBranch(parent, results[0], end, rest, end, returned, location))
    builder.move_to_end(rest)


def _bind_results(
    scope: dict[str, Any], names: list[str], kinds: list[Any], handles: list[SSAValue], doubts: dict[str, Unavailable]
) -> dict[str, Any]:
    for name, value in zip(names, unflatten(kinds, handles), strict=True):
        if type(value) is core.tensor:
            value.handle.name_hint = hint_of(name)
        scope[name] = replace(doubts[name], held=value) if name in doubts else value
    return scope


def _join(
    frame: Frame, node: ast.If, before: dict[str, Any], then: _Branch, otherwise: _Branch
) -> tuple[list[str], dict[str, Any], dict[str, Unavailable]]:
    """Which variables the branches leave with different values, the scope behind them, those left out, and doubts.

    Variables that nothing reads any more are not looked at.
    """
    scope = dict(otherwise.scope)
    names: list[str] = []
    doubts: dict[str, Unavailable] = {}
    new = {**then.scope, **otherwise.scope}.keys() - before.keys()
    for name in [*before, *sorted(new)]:
        left, right = then.scope.get(name, MISSING), otherwise.scope.get(name, MISSING)
        if left is right:
            continue
        if not frame.liveness.after(node, name):
            scope[name] = Unavailable("the branches of an `if` leave it with different values", "read it before")
            continue
        if any(v is MISSING or type(v) is Unavailable for v in (left, right)):
            # What a branch holds is known only in it, until both hold something of one type.
            scope[name] = doubts[name] = replace(_one_sided(frame, node, name, left, right), held=None)
            both = _held(frame, name, left, right, then, otherwise)
            if both is None:
                continue
            left, right = both
        if same_value(left, right):
            if name in doubts:
                scope[name] = replace(doubts[name], held=left)
            continue
        left, right = _as_equals(frame, name, left, right, then, otherwise)
        if not (isinstance(left, core.base_value) and isinstance(right, core.base_value)):
            scope[name] = _different_objects(frame, node, name, left, right)
            continue
        if type(left) is not type(right) or not bool(left.type == right.type):
            if name in doubts:
                continue
            if isinstance(left, core.constexpr) and isinstance(right, core.constexpr):
                scope[name] = _different_objects(frame, node, name, left, right)
                continue
            error = _different_types(frame, node, name, before, left, right, then, otherwise)
            scope[name] = Unavailable(error.message, error.hint or "", error=error)
            continue
        then.scope[name], otherwise.scope[name] = left, right
        names.append(name)
    return names, scope, doubts


def _held(frame: Frame, name: str, left: Any, right: Any, then: _Branch, otherwise: _Branch) -> tuple[Any, Any] | None:
    """What a variable that not every path sets holds on both sides, if that has a type.

    It cannot be read here, but where a loop sets it for sure, its old value is what it keeps if there are no
    iterations.
    """
    left, right = (v.held if type(v) is Unavailable else v for v in (left, right))
    for value, branch in ((left, then), (right, otherwise)):
        if value is MISSING:
            continue
        with frame.builder.inside(branch.end):
            value = as_variable(frame, value)
        if not isinstance(value, core.base_value) or not flatten([value]):
            return None
        kind = value.type
        if frame.trace.options.debug and not isinstance(kind, MaybeType):
            kind = MaybeType(kind, "not every path has set it")
    sides = []
    for value, branch in ((left, then), (right, otherwise)):
        with frame.builder.inside(branch.end):
            if value is MISSING:
                value = unset(frame, name, kind, frame.loops)
            value = as_variable(frame, value)
            sides.append(maybe(frame.builder, value, kind) if isinstance(kind, MaybeType) else value)
    return sides[0], sides[1]


def _as_equals(frame: Frame, name: str, left: Any, right: Any, then: _Branch, otherwise: _Branch) -> tuple[Any, Any]:
    """Where one side is a number known at compile time and the other a tensor, make the number a tensor too.

    Likewise two different numbers, unless they are annotated as constexpr, the numbers in tuples, and a variable that
    is set where on the other side it may not be.
    """
    if isinstance(left, core.constexpr) and isinstance(right, core.constexpr) and not frame.is_constant(name):
        return _in_branch(frame, left, then), _in_branch(frame, right, otherwise)
    if isinstance(left, core.constexpr) and type(right) is core.tensor:
        return _in_branch(frame, left, then), right
    if isinstance(right, core.constexpr) and type(left) is core.tensor:
        return left, _in_branch(frame, right, otherwise)
    if isinstance(left, core.tuple) and isinstance(right, core.tuple) and left.type != right.type:
        return _in_branch(frame, left, then), _in_branch(frame, right, otherwise)
    if isinstance(left, Maybe) and isinstance(right, core.base_value):
        with frame.builder.inside(otherwise.end):
            return left, maybe(frame.builder, as_variable(frame, right), left.type)
    if isinstance(right, Maybe) and isinstance(left, core.base_value):
        with frame.builder.inside(then.end):
            return maybe(frame.builder, as_variable(frame, left), right.type), right
    return left, right


def _in_branch(frame: Frame, value: Any, branch: _Branch) -> Any:
    if isinstance(value, core.constexpr) and not isinstance(value.value, (bool, int, float)):
        return value
    with frame.builder.inside(branch.end):
        return as_variable(frame, value)


def last_assignment(statements: list[ast.stmt], name: str) -> ast.AST | None:
    """The last place in some statements where a name is assigned."""
    last = None
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                last = node
    return last


def _set_at(frame: Frame, statements: list[ast.stmt], name: str) -> Callable[[], Note | None]:
    """A note about the last place in some statements where a name is assigned, found when it is asked for."""

    def note() -> Note | None:
        place = last_assignment(statements, name)
        return frame.note(f"`{name}` is set here", place) if place is not None else None

    return note


def _one_sided(frame: Frame, node: ast.If, name: str, left: Any, right: Any) -> Unavailable:
    for value in (left, right):
        if type(value) is Unavailable:
            return value
    side = "true" if right is MISSING else "false"
    return Unavailable(
        f"it is set only if the condition on line {node.test.lineno} is {side}",
        f"give `{name}` a value before the `if`, or in both branches",
        _set_at(frame, node.body if right is MISSING else node.orelse, name),
    )


def _different_objects(frame: Frame, node: ast.If, name: str, left: Any, right: Any) -> Unavailable:
    return Unavailable(
        f"it is {describe(left)} if the condition on line {node.test.lineno} is true, else {describe(right)}, "
        "which cannot be chosen between when the kernel runs",
        "choose with a condition known at compile time, or between tensors",
        _set_at(frame, [*node.body, *node.orelse], name),
    )


def _different_types(
    frame: Frame,
    node: ast.If,
    name: str,
    before: dict[str, Any],
    left: Any,
    right: Any,
    then: _Branch,
    otherwise: _Branch,
) -> CompilationError:
    notes: list[Note] = []
    at: ast.AST = node
    for branch, value in ((then, left), (otherwise, right)):
        place = last_assignment(branch.statements, name)
        if place is not None:
            notes.append(frame.note(f"`{name}` is {describe(value)} here", place))
            at = place
    if name in before and len(notes) == 1:
        message = (
            f"the initial value of `{name}` is {describe(before[name])}, but a branch of the `if` redefines it as "
            f"{describe(left if otherwise.scope.get(name) is right and before[name] is right else right)}"
        )
        way = way_to(
            getattr(before[name], "type", None), getattr(right if left is before[name] else left, "type", None)
        )
        return frame.error(message, at, hint=f"convert with {way}, so that `{name}` keeps its type")
    message = f"Mismatched type for {name} between then block ({describe(left)}) and else block ({describe(right)})"
    return frame.error(
        message,
        node.test,
        like=AssertionError,
        notes=notes,
        hint=f"convert one of them with {way_to(getattr(left, 'type', None), getattr(right, 'type', None))}",
    )


# -- return ----------------------------------------------------------------------------------------------------------


@runs(ast.Return)
def _return(frame: Frame, node: ast.Return) -> bool:
    if frame.loop_depth:
        raise frame.error(
            "Cannot have `return` statements inside `while` or `for` statements in triton kernels, nor in a `with`",
            node,
            kind=UnsupportedLanguageConstruct,
            hint="keep the result in a variable, and put the condition into a `while` or a mask",
        )
    value = frame.eval(node.value) if node.value is not None else None
    frame.at(node)
    value = _as_result(frame, value)
    kind = None if value is None else value.type
    if kind is not None and frame.returned_at is None:
        frame.returned_at = node
    if not frame.set_return_type(kind):
        first, second = ("nothing" if k is None else describe_type(k) for k in (frame.ret_type, kind))
        raise frame.error(
            f"Return type mismatch: {first} before and {second} here",
            like=TypeError,
            hint="every `return` of a function must return the same type; convert with .to(...)",
        )
    frame.returned = value
    return True


def _as_result(frame: Frame, value: Any) -> Any:
    """What a function returns: numbers become tensors, as a function's result exists when the kernel runs."""
    if type(value) is core.tensor:
        return value
    if isinstance(value, core.tuple):
        return map_tuple(value, lambda v: _as_result(frame, v))
    inner = unwrap(value)
    if inner is None:
        return None
    if isinstance(inner, (bool, int, float)):
        return frame.semantic.to_tensor(inner)
    if not isinstance(value, core.base_value):
        return core.constexpr(inner)
    if getattr(value, "type", None) is None:
        raise frame.error(f"{describe(value)} cannot be returned")
    return value


# -- expressions with conditions ---------------------------------------------------------------------------------------


@evaluates(ast.IfExp)
def _if_exp(frame: Frame, node: ast.IfExp) -> Any:
    # As a chain of `elif`: one within the other side of another, and so on, without recursion.
    waiting: list[_WaitingChoice] = []
    while True:
        part = node.orelse
        condition = frame.eval(node.test)
        if isinstance(condition, core.tensor):
            waiting.append(_begin_choice(frame, node, condition, not waiting))
        elif _static_condition(frame, condition, node.test):
            part = node.body
        if part is node.body or not isinstance(part, ast.IfExp):
            break
        node = part
    value = frame.eval(part)
    for this in reversed(waiting):
        otherwise = _end_side(frame, this.node.orelse, this.otherwise, value)
        value = _end_choice(frame, this, otherwise)
    return value


_Side = tuple[Block, Block, Any]
"""Where one side of a conditional expression begins and ends, and its value."""


class _WaitingChoice(NamedTuple):
    """A conditional expression of which the first side is traced, and the second is being traced."""

    node: ast.IfExp
    flag: SSAValue
    parent: Block
    then: _Side
    otherwise: Block


def _begin_choice(frame: Frame, node: ast.IfExp, condition: core.tensor, first: bool) -> _WaitingChoice:
    frame.at(node.test)
    for part in (node.body, node.orelse) if first else ():
        refuse_named(frame, part, "one side of a conditional expression")
    flag = scalar_condition(frame, condition, node.test)
    parent = frame.builder.block
    assert parent is not None
    block, otherwise = Block(), Block()
    frame.builder.move_to_end(block)
    then = _end_side(frame, node.body, block, frame.eval(node.body))
    frame.builder.move_to_end(otherwise)
    return _WaitingChoice(node, flag, parent, then, otherwise)


def _end_side(frame: Frame, part: ast.expr, block: Block, value: Any) -> _Side:
    frame.at(part)
    if value is not None and (not isinstance(value, core.base_value) or isinstance(value, core.constexpr)):
        value = frame.semantic.to_tensor(unwrap(value))
    end = frame.builder.block
    assert end is not None
    return block, end, value


def _end_choice(frame: Frame, this: _WaitingChoice, otherwise: _Side) -> Any:
    """Make the `scf.if` of a conditional expression."""
    node, then, builder = this.node, this.then, frame.builder
    frame.at(node)
    (_, then_end, left), (_, else_end, right) = then, otherwise
    if left is None and right is None:
        return _if_exp_of_effects(frame, this.parent, this.flag, (then, otherwise))
    if left is None or right is None:
        nothing = node.body if left is None else node.orelse
        raise frame.error("this side of the conditional expression has no value, the other has one", nothing)
    if isinstance(left, core.tuple) and isinstance(right, core.tuple) and left.type != right.type:
        with builder.inside(then_end):
            left = as_variable(frame, left)
        with builder.inside(else_end):
            right = as_variable(frame, right)
    if type(left) is not type(right) or not bool(left.type == right.type):
        raise frame.error(
            f"Ternary expression with dynamic condition has inconsistent types {describe_type(left.type)} "
            f"and {describe_type(right.type)}",
            like=AssertionError,
            hint="convert one of them with .to(...)",
        )
    handles = flatten([left])
    for end, value in ((then_end, left), (else_end, right)):
        builder.move_to_end(end)
        builder.create(scf.YieldOp, flatten([value]))
    results = emit_if(builder, this.parent, this.flag, then[0], otherwise[0], [h.type for h in handles])
    return unflatten([left.type], results)[0]


def _if_exp_of_effects(frame: Frame, parent: Block, flag: SSAValue, sides: Sequence[tuple[Block, Block, None]]) -> None:
    """`store(p, x) if flag else store(q, x)`: a conditional expression for what it does, not for a value."""
    for _, end, _ in sides:
        frame.builder.move_to_end(end)
        frame.builder.create(scf.YieldOp, [])
    emit_if(frame.builder, parent, flag, sides[0][0], sides[1][0], [])


@contextmanager
def _guarded(frame: Frame, parts: Sequence[Any], conjunction: bool) -> Iterator[None]:
    """While a part of `and` or `or` is evaluated, what Python evaluates it for is known to whoever checks something."""
    outer = frame.guards
    scalars = [v for v in parts if not v.type.is_block() and v.dtype.is_int1()]
    frame.guards = [*outer, *((v, conjunction) for v in scalars)]
    try:
        yield
    finally:
        frame.guards = outer


@evaluates(ast.BoolOp)
def _bool_op(frame: Frame, node: ast.BoolOp) -> Any:
    conjunction = isinstance(node.op, ast.And)
    dynamic: list[tuple[Any, ast.expr]] = []
    value: Any = None
    for part in node.values:
        if dynamic:  # all is evaluated, in Python not
            refuse_named(frame, part, f"what `{'and' if conjunction else 'or'}` may leave out")
        if frame.trace.options.debug:
            with _guarded(frame, [v for v, _ in dynamic], conjunction):
                value = frame.eval(part)
        else:
            value = frame.eval(part)
        if not isinstance(value, core.tensor):
            if bool(unwrap(value)) is not conjunction:
                return value  # decides alone; what follows is not evaluated
            continue
        if value.type.is_block():
            warn_at(
                frame.span(part),
                "Logical operators 'and' and 'or' are deprecated for non-scalar tensors; please use '&' or '|' instead",
            )
        dynamic.append((value, part))
    if not dynamic:
        return value
    frame.at(node)
    result = dynamic[-1][0]
    for left, _ in reversed(dynamic[:-1]):
        name = "logical_and" if conjunction else "logical_or"
        result = call(frame, get_attribute(frame, left, name, node), [result], {})
    return result
