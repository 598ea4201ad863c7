"""The rules of single operations: a table filled by the modules beside this one, and words for what is wrong.

A rule is a function on one operation that calls `fail` where it does not hold. What it may take for granted: the
operation has the operands, results, regions and properties that its class says, and all types are ones that tile IR
has (see `structure`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import CompilationError, registry

from ..locations import span_of
from ..text import OPERATIONS, type_text
from ..text.conversions import conversion
from ..text.examples import written
from ..types import element_of, i1, is_float, is_int, is_tensor, like, shape_of

Rule = Callable[[Any], None]
RULES: dict[type[Operation], Rule] = {}
"""For each class of operation, the rule that it obeys beside its structure."""

LAYOUT_RULES: dict[type[Operation], Rule] = {}
"""What layouts must be, checked before the rule where tiles have them; `weft.ir.gpu` fills it."""


rule, layout_rule = registry(RULES), registry(LAYOUT_RULES)
"""Make a function the rule of some classes of operations: `@rule(tt.DotOp)`."""


def fail(op: Operation, message: str, hint: str | None = None) -> NoReturn:
    """Say what is wrong with an operation, at its place or, where it has none, at that of what it stands in.

    Where the rule has no way out of its own, an example shows what the operation takes.
    """
    if hint is None:
        example = written(op.name)
        hint = None if example is None else f"a right one, for comparison: {example}"
    place, around = span_of(op), op.parent_op()
    while place is None and around is not None:
        place, around = span_of(around), around.parent_op()
    raise CompilationError(f"{op.name}: {message}", place, hint=hint)


def show(type: Attribute | SSAValue) -> str:
    """A type (or the type of a value) for a message."""
    return type_text(type.type if isinstance(type, SSAValue) else type)


def dims(shape: Iterable[int]) -> str:
    """A shape for a message, `[8, 16]`."""
    return str(list(shape))


_SHAPING = ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape")


def _sibling(op: Operation, value: SSAValue) -> str | None:
    """What does the same for elements of the other kind: arith.addf for arith.addi."""
    stem = re.sub(r"(?:[su]?i|f)$", "", op.name)
    ends = ("i", "si") if is_int(value.type) else ("f",)
    siblings = [stem + end for end in ends if stem != op.name and stem + end in OPERATIONS and stem + end != op.name]
    return f"{siblings[0]} works on {show(value)}" if siblings else None


def need_same(op: Operation, subject: str, *values: SSAValue) -> None:
    """All of these values are of one type."""
    first = values[0].type
    for value in values[1:]:
        if value.type is not first and value.type != first:
            converter = conversion(value.type, first)
            hint = f"make {show(first)} of the other with {converter}" if converter else None
            fail(op, f"{subject} must be of one type, got {', '.join(show(v) for v in values)}", hint)


def need_same_shape(op: Operation, *values: SSAValue) -> None:
    """All of these values have one shape (a scalar has none)."""
    first = values[0].type
    for value in values[1:]:
        if is_tensor(value.type) != is_tensor(first) or shape_of(value.type) != shape_of(first):
            converter = conversion(like(value.type, element_of(first)), first)
            hint = f"give {show(value)} that shape with {converter}" if converter in _SHAPING else None
            fail(op, f"operands and result must have one shape, got {', '.join(show(v) for v in values)}", hint)


def need_int(op: Operation, value: SSAValue) -> None:
    """An integer or a tile of integers."""
    if not is_int(element_of(value.type)):
        fail(op, f"expected integers, got {show(value)}", _sibling(op, value))


def need_float(op: Operation, value: SSAValue) -> None:
    """A float or a tile of floats."""
    if not is_float(value.type):
        fail(op, f"expected floats, got {show(value)}", _sibling(op, value))


def need_tile(op: Operation, value: SSAValue) -> tuple[int, ...]:
    """A tile; gives its shape."""
    if not is_tensor(value.type):
        fail(op, f"expected a tile, got {show(value)}")
    return shape_of(value.type)


def need_truth(op: Operation, value: SSAValue) -> None:
    """A truth value or a tile of them."""
    if element_of(value.type) != i1:
        fail(op, f"expected i1, got {show(value)}")
