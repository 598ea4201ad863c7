"""The registers that hold the kernel's variables, for a debugger that stops the program."""

from __future__ import annotations

import re

from xdsl.ir import Operation, SSAValue

from weft.ir import is_tensor, span_of
from weft.ir.gpu import AsyncTokenType, MemDescType, layout_of
from weft.ir.lane import ELEMENT_BITS, Value, Variable

ASSIGNMENT = re.compile(r"\s*(\w+)\s*(:[^=]*)?=[^=]")
"""A line of source that assigns to one name."""


def _assigned(value: SSAValue) -> str | None:
    """What the source calls a buffer, which has no name in IR: the name that the line assigns to."""
    span = span_of(value.owner) if isinstance(value.owner, Operation) else None
    match = ASSIGNMENT.match((span.source_line() if span is not None else None) or "")
    return match[1] if match else None


def variable_of(value: SSAValue, fragment: Value, elem: str) -> Variable | None:
    """The variable that a value is: one that has a name, of a kind that can be shown.

    A buffer in shared memory can be shown if it is whole, and in the block's own memory.
    """
    name, type = value.name_hint, value.type
    if isinstance(type, MemDescType):
        name = name or _assigned(value)
    if not name or isinstance(type, AsyncTokenType):
        return None
    if isinstance(type, MemDescType):
        linear = type.data.layout.linear
        if linear is None or elem not in ELEMENT_BITS or linear.in_dims.get("block", 1) != 1:
            return None
        shape = tuple(linear.out_dims.values())
        whole = type.shape[len(type.shape) - len(shape) :] == shape
        return Variable(name, fragment, linear, elem, type.shape, type.gaps) if whole else None
    return Variable(name, fragment, layout_of(type) if is_tensor(type) else None)
