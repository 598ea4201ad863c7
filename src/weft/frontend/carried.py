"""What goes round a loop: the variables whose value in one iteration may be read in a later one, or after the loop.

    k = tl.program_id(0)
    for i in range(n):          # carried: total.  k is set before it is read, so its old value goes nowhere
        k = i * 2
        total += k

A variable is carried if the body assigns it and it may be read before that, or after the loop (`liveness`).  One that
has a value before the loop is an argument of the body's block from the start; where it turns out unchanged, the
argument is dropped again.  It must keep its type, unless only one path before the loop has set it.  One that the loop
is the first to set (its own variable is one) gets its argument when the body has been traced and its type is known:
before the first iteration that is what the variable held before, of whatever integer type, or a zero (`unset`).  So
after a loop every variable has the value that it has in Python.

A variable that is known at compile time but not annotated as constexpr, as an argument that was specialised to 1,
becomes a scalar before the loop.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from weft.base import CompilationError
from weft.language import core
from weft.language.callable import MISSING

from .bindings import as_variable
from .frame import Frame, Unavailable
from .unset import Maybe, MaybeType, maybe, zero
from .values import describe, describe_type, flatten, name_value, same_value, snapshot, unflatten, way_to


def assigned_names(statements: Sequence[ast.stmt]) -> dict[str, ast.AST]:
    """The names that statements assign, in order, each with the last place that does."""
    by_name: dict[str, ast.AST] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                by_name[node.id] = node
    return by_name


def unset(frame: Frame, name: str, kind: Any, loops: Sequence[Carried]) -> Any:
    """What a variable of this type holds where nothing in the current iterations of these loops has set it.

    That is what an earlier iteration has left in it, so the loops around which it is live carry it; a zero before the
    first.
    """
    value: Any = None
    for loop in loops:
        if name in loop.names:
            value = loop.inside[name] if loop.kind_of(name) == kind else None
        elif loop.enters(name):
            value = loop.carry(name, kind, value)
        else:
            value = None
    return value if value is not None else zero(frame.builder, kind)


def _stays(before: Any, now: Any) -> bool:
    """Whether a value of the one type may follow one of the other; parts of it may have become ones to wait for."""
    return bool(now == before) or bool(now._as_carried() == before._as_carried())


def _held(value: Any) -> Any:
    """What a variable holds, also where it cannot be read."""
    return value.held if type(value) is Unavailable else value


def _without_doubt(variable: Any) -> Any:
    """The type of a variable, of its value or of its type in the loop, whether it may be unset or not."""
    value = _held(variable)
    kind = value if isinstance(value, core.base_type) else getattr(value, "type", None)
    kind = kind.kind if isinstance(kind, MaybeType) else kind
    return kind if kind is None else kind._as_carried()


class Carried:
    """The variables that a loop carries: what they are before it, and which arguments stand for them in it."""

    def __init__(self, frame: Frame, node: ast.For | ast.While, variable: str | None) -> None:
        self.frame = frame
        self.node = node
        self.variable = variable
        self.before = frame.scope
        self.parent = frame.builder.block
        self.blocks: Sequence[Block] = ()
        self.assigned = assigned_names(node.body)
        if variable is not None:
            self.assigned.setdefault(variable, node.target)  # type: ignore[union-attr]
        self.names: list[str] = []
        self.kinds: list[Any] = []
        self.initial: list[SSAValue] = []
        self.inside: dict[str, Any] = {}
        """What stands for each variable in the body."""
        self.late: set[str] = set()
        """Those that nothing has set before the loop, carried for what of the body may not set them."""
        self.doubts: dict[str, Unavailable] = {}
        """What may have no value at the end of the body."""
        for name, value in self.before.items():
            if name in self.assigned and name != variable and self.enters(name):
                start = self._start(name, value)
                if start is not None:
                    self.names.append(name)
                    self.kinds.append(start.type)
                    self.initial += flatten([start])

    def enters(self, name: str) -> bool:
        """Whether an iteration may read what the one before it has left in a variable, or what follows the loop may."""
        return self.frame.liveness.entering(self.node, name)

    def kind_of(self, name: str) -> Any:
        """The type of a carried variable."""
        return self.kinds[self.names.index(name)]

    def _start(self, name: str, value: Any) -> Any:
        """What a variable is before the first iteration, as a value of the kernel's run; None if there is no such
        value.
        """
        if type(value) is Unavailable:
            initial = value.held
            if initial is None or isinstance(initial, Maybe) or not self.frame.trace.options.debug:
                return initial
            return maybe(self.frame.builder, initial, MaybeType(initial.type, value.reason))
        if isinstance(value, core.constexpr | core.tuple) and not self.frame.is_constant(name):
            value = as_variable(self.frame, value)
        return value if isinstance(value, core.base_value) and flatten([value]) else None

    # -- the body ------------------------------------------------------------------------------------------------------

    def enter(self, arguments: Sequence[SSAValue]) -> None:
        """Start a scope in which the variables are these block arguments."""
        scope = snapshot(self.before)
        for name, value in zip(self.names, unflatten(self.kinds, arguments), strict=True):
            name_value(value, name)
            before = scope[name]
            scope[name] = self.inside[name] = value
            if type(before) is Unavailable:
                scope[name] = replace(before, held=value)
        self.frame.scope = scope

    def carry(self, name: str, kind: Any, initial: Any = None) -> Any:
        """Carry one more variable, which nothing has set before the loop unless `initial` is given."""
        builder = self.frame.builder
        assert self.parent is not None
        if initial is None:
            with builder.inside(self.parent):
                initial = zero(builder, kind)
        handles = flatten([initial])
        arguments: list[SSAValue] = []
        for block in self.blocks:
            arguments = [block.insert_arg(h.type, len(block.args)) for h in handles]
        self.late.add(name)
        self.names.append(name)
        self.kinds.append(kind)
        self.initial += handles
        self.inside[name] = unflatten([kind], arguments)[0]
        name_value(self.inside[name], name)
        return self.inside[name]

    def finish(self) -> list[SSAValue]:
        """What the body leaves in the variables, after checking that they kept their types."""
        after = self.frame.scope
        for name, place in self.assigned.items():
            before, now = self.before.get(name, MISSING), after.get(name, MISSING)
            if name in self.names and now is not MISSING and self._may_change(name):
                self._finish_free(name, before, now)
            elif name in self.names and self._is_in_doubt(name, now):
                self._set_aside(name, _held(now).value)
                self._carry_late(name, before, now)
            elif name in self.names:
                after[name] = self._final(name, now, place)
            elif self._is_known(name, before):
                if now is not before and not same_value(now, before):
                    raise self._changed_constant(name, before, now, place)
            else:
                self._carry_late(name, before, now)
        return flatten(after[name] for name in self.names)

    def _final(self, name: str, now: Any, place: ast.AST) -> Any:
        """What a carried variable is at the end of an iteration."""
        kind = self.kind_of(name)
        if now is MISSING:
            return self.inside[name]
        if type(now) is Unavailable:
            if now.held is None:
                raise now.error or self.frame.error(
                    f"`{name}` may have no value at the end of the loop's body: {now.reason}",
                    place,
                    notes=now.notes(),
                    hint=now.hint,
                )
            self.doubts[name], now = now, now.held
        if isinstance(now, core.constexpr | core.tuple):
            now = as_variable(self.frame, now)
        if isinstance(kind, MaybeType) and isinstance(now, core.base_value):
            now = maybe(self.frame.builder, now, kind)
        if type(now) is not type(self.inside[name]) or not _stays(kind, now.type):
            raise self._changed_type(name, kind, now, place)
        return now

    def _may_change(self, name: str) -> bool:
        """Whether a carried variable need not keep its type, as not every path before the loop has set it."""
        return name in self.late or type(self.before.get(name, MISSING)) is Unavailable

    def _finish_free(self, name: str, before: Any, now: Any) -> None:
        """The end of an iteration for a variable that may change its type.

        A value of another type is none for the loop or the branch that finds it in the next iteration, as it would be
        none before the loop (or it is converted, from integer to integer).  After the loop it is one: it goes round a
        second time, with the type that it has.
        """
        kind, after = self.kind_of(name), self.frame.scope
        if isinstance(now, core.constexpr | core.tuple):
            now = as_variable(self.frame, now)
        value = self._converted(now, kind)
        if value is not None and _without_doubt(now) == _without_doubt(kind):
            after[name] = value
            if type(now) is Unavailable:
                self.doubts[name] = now
            return
        self._set_aside(name, value if value is not None else zero(self.frame.builder, kind))
        self._carry_late(name, before, now)

    def _is_in_doubt(self, name: str, now: Any) -> bool:
        """Whether a variable that has a value before the loop may have none after an iteration, but for that is the
        same.
        """
        value, kind = _held(now), self.kind_of(name)
        return isinstance(value, Maybe) and not isinstance(kind, MaybeType) and _stays(kind, value.value.type)

    def _set_aside(self, name: str, value: Any) -> None:
        """Let a variable go round for the iterations only, leaving this value; after the loop it is another one."""
        index = self.names.index(name)
        aside = self.names[index] = f"{name}.{index}"
        self.inside[aside] = self.inside.pop(name)
        self.frame.scope[aside] = value

    def _carry_late(self, name: str, before: Any, now: Any) -> None:
        """Carry a variable that has a value at the end of the body, and none of its type before the loop.

        Nothing in the body has asked for what an earlier iteration leaves in it: it is for what follows the loop.
        """
        frame = self.frame
        if not frame.liveness.after(self.node, name):
            return
        if type(now) is Unavailable:
            self.doubts[name], now = now, now.held
        if now is MISSING or (isinstance(now, core.constexpr) and frame.is_constant(name)):
            return
        now = as_variable(frame, now)
        if not isinstance(now, core.base_value) or not flatten([now]):
            return
        assert self.parent is not None
        with frame.builder.inside(self.parent):
            initial = self._converted(before, now.type)
            kind = now.type if initial is None else initial.type
            if isinstance(kind, MaybeType) or (initial is None and frame.trace.options.debug):
                kind = kind.kind if isinstance(kind, MaybeType) else kind
                kind = MaybeType(kind, f"{self._origin(name)}, which did not run")
            if initial is None:  # what an earlier iteration of the loops around has left, if this one has set nothing
                is_set = before is not MISSING and type(before) is not Unavailable
                initial = unset(frame, name, kind, () if is_set else frame.loops[:-1])
        if isinstance(kind, MaybeType):
            now = maybe(frame.builder, now, kind)
        self.carry(name, kind, initial)
        frame.scope[name] = now

    def _converted(self, before: Any, kind: Any) -> Any:
        """What a variable held before the loop as a value of the type that it has after; None if it held no such."""
        builder = self.frame.builder
        start = None if before is MISSING else _held(before)
        if isinstance(start, Maybe) or isinstance(kind, MaybeType):
            inner = start.value if isinstance(start, Maybe) else start
            value = self._converted(inner, kind.kind if isinstance(kind, MaybeType) else kind)
            if value is None:
                return None
            if isinstance(start, Maybe) and isinstance(value, Maybe):
                is_set = builder.binary(arith.AndIOp, start.is_set, value.is_set)
                return Maybe(value.value, is_set, MaybeType(value.type.kind, start.type.reason))
            if isinstance(start, Maybe):
                return Maybe(value, start.is_set, MaybeType(value.type, start.type.reason))
            return maybe(builder, value, kind) if isinstance(kind, MaybeType) else value
        if not isinstance(start, core.base_value):
            return None
        start = as_variable(self.frame, start)
        if not isinstance(start, core.base_value) or not flatten([start]):
            return None
        if _stays(kind, start.type):
            return start
        if type(start) is not core.tensor or not (isinstance(kind, core.dtype) and kind.is_int()):
            return None
        return None if start.type.is_block() or not start.dtype.is_int() else self._narrowed(start, kind)

    def _narrowed(self, start: Any, kind: Any) -> Any:
        """An integer as one of another type; while debugging with the flag that says whether it is still the same."""
        semantic = self.frame.semantic
        value = semantic.cast(start, kind)
        if not self.frame.trace.options.debug or semantic.integer_promote_impl(start.dtype, kind) == kind:
            return value
        same = semantic.equal(semantic.cast(value, start.dtype), start)
        return Maybe(value, same.handle, MaybeType(kind, ""))

    def _origin(self, name: str) -> str:
        if name == self.variable:
            return f"it is the variable of the loop on line {self.node.lineno}"
        return f"it is set only in the loop on line {self.node.lineno}"

    def _is_known(self, name: str, before: Any) -> bool:
        """Whether the loop must leave a variable alone: its value is known at compile time, and read or annotated."""
        if name == self.variable or before is MISSING or type(before) is Unavailable:
            return False
        return self.enters(name) or (isinstance(before, core.constexpr) and self.frame.is_constant(name))

    # -- what is wrong -------------------------------------------------------------------------------------------------

    def _changed_type(self, name: str, kind: Any, now: Any, place: ast.AST) -> CompilationError:
        tensor = isinstance(now, core.base_value) and not isinstance(now, core.constexpr)
        return self.frame.error(
            f"Loop-carried variable `{name}` has initial type {describe_type(kind)} but is re-assigned to "
            f"{describe_type(now.type) if tensor else describe(now)} in the loop; its type must stay the same",
            place,
            hint=f"convert with {way_to(kind, getattr(now, 'type', None))}, or give `{name}` its final type "
            "before the loop",
        )

    def _changed_constant(self, name: str, before: Any, now: Any, place: ast.AST) -> CompilationError:
        hint = f"assign `{name}` before the loop: what is assigned exists when the kernel runs"
        if isinstance(before, core.constexpr) and isinstance(before.value, (bool, int, float)):
            hint = "what is annotated as constexpr is known at compile time: "
            hint += f"write `{name} = {name} + 0` before the loop"
        return self.frame.error(
            f"cannot re-assign `{name}` in the loop: it is {describe(before)}, known at compile time", place, hint=hint
        )

    # -- after the loop ------------------------------------------------------------------------------------------------

    def leave(self, changed: Changed, results: Sequence[SSAValue]) -> None:
        """The scope after a loop: its results for what changed, what was before for the rest."""
        values = list(self.initial)
        for index, result in zip(changed.kept, results, strict=True):
            values[index] = result
        after, scope = self.frame.scope, self.before
        first = 0
        for name, kind in zip(self.names, self.kinds, strict=True):
            value, last = kind._unflatten_ir(values, first)
            is_changed = name not in scope or any(first <= index < last for index in changed.kept)
            if name in self.assigned and is_changed:
                name_value(value, name)
                scope[name] = replace(self.doubts[name], held=value) if name in self.doubts else value
            first = last
        for name, place in self.assigned.items():
            before, now = scope.get(name, MISSING), after.get(name, MISSING)
            if name in self.names or now is MISSING or same_value(before, now):
                continue
            if type(now) is Unavailable:
                scope[name] = replace(now, held=None)
                continue
            scope[name] = Unavailable(
                f"{self._origin(name)}, which may not run",
                f"give `{name}` a value before the loop",
                self.frame.note(f"`{name}` is set here", place),
            )
        self.frame.scope = scope

    def drop_unchanged(self, arguments: Sequence[Sequence[BlockArgument]], final: list[SSAValue]) -> Changed:
        """Take the values that the body leaves as they were out of the loop, and those that nothing has asked for.

        `arguments` are the block arguments that stand for each value, the last of them in the body; those of what does
        not change are replaced by the initial value.
        """
        kept = []
        gone: dict[SSAValue, SSAValue] = {}
        wanted = self._wanted()
        left_in_others = {end for end, group in zip(final, arguments, strict=True) if end is not group[-1]}
        for index, (start, end, group) in enumerate(zip(self.initial, final, arguments, strict=True)):
            asked = wanted[index] or group[-1] in left_in_others or any(a.first_use is not None for a in group)
            if not asked or end is group[-1] or end is start:
                for argument in group:
                    gone[argument] = start
                    argument.replace_all_uses_with(start)
                    argument.block.erase_arg(argument)
            else:
                kept.append(index)
        return Changed(kept, gone, [self.initial[i] for i in kept], [gone.get(final[i], final[i]) for i in kept])

    def _wanted(self) -> list[bool]:
        """For each carried SSA value whether what follows the loop may read its variable."""
        wanted: list[bool] = []
        for name, kind in zip(self.names, self.kinds, strict=True):
            types: list[Attribute] = []
            kind._flatten_ir_types(self.frame.builder, types)
            wanted += [self.frame.liveness.after(self.node, name)] * len(types)
        return wanted


@dataclass(slots=True)
class Changed:
    """Which of the carried SSA values a loop changes."""

    kept: list[int]
    gone: dict[SSAValue, SSAValue]
    """Block arguments that were taken out, and what stands for them now."""
    initial: list[SSAValue]
    final: list[SSAValue]
