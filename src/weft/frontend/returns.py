"""Early returns, as structured control flow.

The IR has no jumps: `if c: return x`, with `rest` after it, becomes

    %r = scf.if %c { yield x } else { rest; yield what rest returns }

so after an `if` of which one branch returned, tracing goes on *inside* the other branch, and the `if` stays open
until that has returned too.  `Frame.opens` holds the open ones; `close_returned` makes their `scf.if`.

Where a branch both returns and falls through (an early return nested in it) and the other branch falls through as
well, what follows must not be traced twice.  Then the branches yield a flag, "has returned", with the value returned
(or poison) and the variables (or poison), and what follows goes into an `if` on the flag (`close_flagged`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import scf, ub
from xdsl.ir import Attribute, Block, Region, SSAValue

from weft.ir import Builder, i1

from .values import flatten, unflatten


@dataclass(slots=True)
class OpenBranch:
    """A dynamic `if` of which one branch has returned, while tracing goes on inside the other."""

    parent: Block
    """The block that the `scf.if` goes at the end of."""
    condition: SSAValue
    then: Block
    otherwise: Block
    returned: Block
    """The last block of the branch that returned; it wants its yield."""
    value: Any
    """What that branch returns; None for nothing."""
    location: Attribute


def poison(builder: Builder, kinds: Sequence[Attribute]) -> list[SSAValue]:
    """Values that are never looked at, of these types."""
    properties = {"value": ub.PoisonAttr()}
    return [builder.create(ub.PoisonOp, (), (kind,), properties).results[0] for kind in kinds]


def emit_if(
    builder: Builder,
    parent: Block,
    condition: SSAValue,
    then: Block,
    otherwise: Block | None,
    kinds: Sequence[Attribute],
) -> list[SSAValue]:
    """Make an `scf.if` of two finished blocks at the end of `parent`, and go on behind it."""
    builder.move_to_end(parent)
    regions = (Region(then), Region(otherwise) if otherwise is not None else Region())
    return list(builder.create(scf.IfOp, (condition,), kinds, {}, {}, regions).results)


def _value_handles(builder: Builder, value: Any, kinds: Sequence[Attribute]) -> list[SSAValue]:
    """The SSA values of what a path returns; poison where it falls off the end of a function that returns a value."""
    return flatten([value]) if value is not None else poison(builder, kinds)


def close_returned(builder: Builder, opens: list[OpenBranch], value: Any, kind: Any) -> Any:
    """Close ifs whose other branch, where the builder stands, has now returned `value`; gives what they all return.

    `kind` is the type of what the function returns, None for nothing.
    """
    kinds: list[Attribute] = []
    if kind is not None:
        kind._flatten_ir_types(builder, kinds)
    for branch in reversed(opens):
        builder.loc = branch.location
        builder.create(scf.YieldOp, _value_handles(builder, value, kinds) if kind is not None else ())
        builder.move_to_end(branch.returned)
        builder.create(scf.YieldOp, _value_handles(builder, branch.value, kinds) if kind is not None else ())
        results = emit_if(builder, branch.parent, branch.condition, branch.then, branch.otherwise, kinds)
        value = unflatten([kind], results)[0] if kind is not None else None
    opens.clear()
    return value


def close_flagged(
    builder: Builder, opens: list[OpenBranch], variables: Sequence[SSAValue], kind: Any
) -> list[SSAValue]:
    """Close ifs whose other branch, where the builder stands, falls through.

    Gives, where the outermost of them began: the flag "has returned", what was returned, and the variables; each is
    poison on the paths that have none.  With no ifs to close, the flag is a constant.
    """
    kinds: list[Attribute] = []
    if kind is not None:
        kind._flatten_ir_types(builder, kinds)
    variable_kinds = [v.type for v in variables]
    values = [builder.constant(0, i1), *poison(builder, kinds), *variables]
    for branch in reversed(opens):
        builder.loc = branch.location
        builder.create(scf.YieldOp, values)
        builder.move_to_end(branch.returned)
        returned = [builder.constant(1, i1)]
        if kind is not None:
            returned += _value_handles(builder, branch.value, kinds)
        builder.create(scf.YieldOp, [*returned, *poison(builder, variable_kinds)])
        result_kinds = [i1, *kinds, *variable_kinds]
        values = emit_if(builder, branch.parent, branch.condition, branch.then, branch.otherwise, result_kinds)
    opens.clear()
    return values
