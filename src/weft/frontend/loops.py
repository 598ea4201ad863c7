"""Loops: `for` over range, tl.range or tl.static_range, and `while`.

The body of a dynamic loop is traced once; what goes round it is in `carried`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Sequence
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import UnregisteredAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from weft.base import UnsupportedLanguageConstruct
from weft.ir import hint_of, i32_attr, unit_attr
from weft.language import core

from .bindings import refuse_named
from .branches import scalar_condition
from .carried import Carried
from .frame import Frame, runs
from .iterations import iterations_of
from .values import describe, iteration_count, unwrap

_NO_LICM = UnregisteredAttr.with_name_and_type("llvm.loop_annotation", False)(
    "llvm.loop_annotation", False, False, "licm = <disable = true>"
)
"""`#llvm.loop_annotation<licm = <disable = true>>`: do not move code out of this loop."""

_HINTS = {"num_stages", "loop_unroll_factor", "disallow_acc_multi_buffer", "flatten", "warp_specialize", "disable_licm"}
"""What `range` takes as well, as in Triton, though not in Python."""


# -- for ---------------------------------------------------------------------------------------------------------------


@runs(ast.For)
def _for(frame: Frame, node: ast.For) -> bool:
    if node.orelse:
        raise frame.error("`else` after a loop cannot be used in a kernel", node.orelse[0],
                          kind=UnsupportedLanguageConstruct, hint="put it after the loop")  # fmt: skip
    if not isinstance(node.target, ast.Name):
        raise frame.error("the variable of a `for` must be one name", node.target, kind=UnsupportedLanguageConstruct,
                          hint="give it one, and take what else an iteration needs from a tuple, t[i]")  # fmt: skip
    iterator = unwrap(frame.eval(node.iter.func)) if isinstance(node.iter, ast.Call) else None
    if not (isinstance(node.iter, ast.Call) and iterator in (builtins.range, core.range, core.static_range)):
        raise frame.error(
            "a `for` runs over range, tl.range or tl.static_range only",
            node.iter,
            kind=UnsupportedLanguageConstruct,
            hint="to go through a tuple t, use `for i in tl.static_range(len(t))` and t[i]",
        )
    args: list[Any] = []
    for argument in node.iter.args:
        if isinstance(argument, ast.Starred):
            args += list(frame.eval(argument.value))
        else:
            args.append(frame.eval(argument))
    kwargs = {str(k.arg): frame.eval(k.value) for k in node.iter.keywords}
    frame.at(node.iter)
    if iterator is core.static_range:
        return _static_for(frame, node, node.target.id, core.static_range(*args, **kwargs))
    if iterator is builtins.range and not (1 <= len(args) <= 3 and kwargs.keys() <= _HINTS):
        raise frame.error("range takes one to three positional arguments", node.iter,
                          hint="range(end) or range(start, end, step), and the hints that tl.range takes")  # fmt: skip
    asked = core.range(*args, **kwargs)
    bounds = [asked.start, asked.end, asked.step]
    _dynamic_for(frame, node, node.target.id, bounds, _loop_attributes(frame, node, asked))
    return False


def _static_for(frame: Frame, node: ast.For, name: str, iterator: Any) -> bool:
    """Trace the body once for each value."""
    start, end, step = (unwrap(v) for v in (iterator.start, iterator.end, iterator.step))
    for value in (start, end, step):
        if isinstance(value, core.base_value) or not isinstance(value, int):
            raise frame.error(
                f"the bounds of static_range must be integers known at compile time, found {describe(value)}",
                node.iter,
                hint="use range or tl.range",
            )
    if step == 0:
        raise frame.error("the step of static_range must not be 0", node.iter)
    values = builtins.range(start, end, step)
    count = iteration_count(values)
    frame.semantic.unroll(f"static_range unrolls {count} bodies", count, "use range, which makes a loop")
    for value in values:
        frame.scope[name] = core.constexpr(value)
        if frame.run(node.body):
            return True
    return False


def _loop_attributes(frame: Frame, node: ast.For, hints: Any) -> dict[str, Attribute]:
    """The hints of a tl.range as attributes of the loop."""
    attributes: dict[str, Attribute] = {}
    for name in ("num_stages", "loop_unroll_factor"):
        value = unwrap(getattr(hints, name))
        if value is None:
            continue
        if not isinstance(value, int) or not 0 <= value < 1 << 31:
            raise frame.error(
                f"{name} of a range must be an integer known at compile time, found {describe(getattr(hints, name))}",
                node.iter,
            )
        attributes[f"tt.{name}"] = i32_attr(int(value))
    for name in ("disallow_acc_multi_buffer", "flatten", "warp_specialize"):
        if unwrap(getattr(hints, name)):
            attributes[f"tt.{name}"] = unit_attr()
    if unwrap(hints.disable_licm):
        attributes["llvm.loop_annotation"] = _NO_LICM
    return attributes


def _dynamic_for(
    frame: Frame, node: ast.For, name: str, bounds: Sequence[Any], attributes: dict[str, Attribute]
) -> None:
    builder = frame.builder
    iterations = iterations_of(frame, node, bounds)
    location, parent = builder.loc, builder.block
    assert parent is not None
    carried = Carried(frame, node, name)
    body = Block(arg_types=[iterations.low.type, *(h.type for h in carried.initial)])
    carried.blocks = (body,)
    builder.move_to_end(body)
    carried.enter(body.args[1:])
    induction = iterations.value(body.args[0])
    induction.name_hint = hint_of(name)
    frame.scope[name] = core.tensor(induction, iterations.kind)
    final = _trace_loop_body(frame, node, carried)
    changed = carried.drop_unchanged([(a,) for a in body.args[1:]], final)
    builder.loc = location
    builder.create(scf.YieldOp, changed.final)
    builder.move_to_end(parent)
    kinds = [v.type for v in changed.initial]
    operands = (iterations.low, iterations.high, iterations.step, *changed.initial)
    loop = builder.create(scf.ForOp, operands, kinds, {}, attributes, (Region(body),))
    carried.leave(changed, loop.results)


def _trace_loop_body(frame: Frame, node: ast.For | ast.While, carried: Carried) -> list[SSAValue]:
    """Trace one iteration; gives what it leaves in the variables that go round."""
    frame.loop_depth += 1
    frame.loops.append(carried)
    opens, frame.opens = frame.opens, []
    frame.run(node.body)
    frame.opens = opens
    frame.loop_depth -= 1
    frame.at(node)
    final = carried.finish()
    frame.loops.pop()
    return final


# -- while -------------------------------------------------------------------------------------------------------------


@runs(ast.While)
def _while(frame: Frame, node: ast.While) -> bool:
    if node.orelse:
        raise frame.error("`else` after a loop cannot be used in a kernel", node.orelse[0],
                          kind=UnsupportedLanguageConstruct, hint="put it after the loop")  # fmt: skip
    builder = frame.builder
    frame.at(node)
    location, parent = builder.loc, builder.block
    assert parent is not None
    carried = Carried(frame, node, None)
    kinds = [h.type for h in carried.initial]
    before, body = carried.blocks = Block(arg_types=kinds), Block(arg_types=kinds)
    builder.move_to_end(before)
    carried.enter(before.args)
    refuse_named(frame, node.test, "the condition of a `while`")
    condition = frame.eval(node.test)
    attributes: dict[str, Attribute] = {}
    if isinstance(condition, core.condition):
        if unwrap(condition.disable_licm):
            attributes["llvm.loop_annotation"] = _NO_LICM
        condition = condition.condition
    frame.at(node.test)
    if not isinstance(condition, core.tensor):
        condition = frame.semantic.to_tensor(bool(unwrap(condition)))
    flag = scalar_condition(frame, condition, node.test)
    before_end = builder.block
    assert before_end is not None
    builder.move_to_end(body)
    carried.enter(body.args)
    final = _trace_loop_body(frame, node, carried)
    groups = list(zip(before.args, body.args, strict=True))
    changed = carried.drop_unchanged(groups, final)
    builder.loc = location
    builder.create(scf.YieldOp, changed.final)
    builder.move_to_end(before_end)
    builder.create(scf.ConditionOp, (changed.gone.get(flag, flag), *before.args))
    builder.move_to_end(parent)
    kinds = [v.type for v in changed.initial]
    loop = builder.create(scf.WhileOp, changed.initial, kinds, {}, attributes, (Region(before), Region(body)))
    carried.leave(changed, loop.results)
    return False
