"""Variables that may not have been set: what a loop that does not run leaves in what only its body sets.

    for i in range(n):
        last = i
    store(last)          # 0 if n <= 0; under `debug=True` an error of the launch

A zero of the variable's type stands for the value that is missing.  With the option `debug` a flag goes along, through
loops and branches like any other part of the value, and whoever reads the variable asserts it (`Frame.lookup`).
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute, SSAValue

from weft.ir import Builder, i1, i64, is_float, is_int, is_pointer, like, tt
from weft.language import core

from .returns import poison
from .values import flatten, unflatten


class MaybeType(core.base_type):
    """The type of a variable that may not have been set."""

    def __init__(self, kind: Any, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        """Why it may have no value: what the launch's error says."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MaybeType) and bool(self.kind == other.kind)

    def __hash__(self) -> int:
        return hash((MaybeType, self.kind))

    def __str__(self) -> str:
        return str(self.kind)

    def _as_carried(self) -> core.base_type:
        return MaybeType(self.kind._as_carried(), self.reason)

    def _flatten_ir_types(self, builder: Any, out: list[Attribute]) -> None:
        out.append(i1)
        self.kind._flatten_ir_types(builder, out)

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        value, end = self.kind._unflatten_ir(handles, cursor + 1)
        return Maybe(value, handles[cursor], self), end


class Maybe(core.base_value):
    """A variable that may not have been set, while debugging: its value, or a zero, and the flag that tells."""

    type: MaybeType

    def __init__(self, value: Any, is_set: SSAValue, kind: MaybeType) -> None:
        self.value = value
        self.is_set = is_set
        self.type = kind

    def _flatten_ir(self, handles: list[SSAValue]) -> None:
        handles += [self.is_set, *flatten([self.value])]


def maybe(builder: Builder, value: Any, kind: MaybeType) -> Maybe:
    """A value that has been set, as one of those that may not have been."""
    if isinstance(value, Maybe):
        return value
    return Maybe(value, builder.constant(1, i1), MaybeType(value.type, kind.reason))


def zero(builder: Builder, kind: Any) -> Any:
    """The value of a type that stands for a variable without one: zeros and null pointers, and flags that say no."""
    types: list[Attribute] = []
    kind._flatten_ir_types(builder, types)
    return unflatten([kind], [_zero(builder, t) for t in types])[0]


def _zero(builder: Builder, kind: Attribute) -> SSAValue:
    if is_int(kind) or is_float(kind):
        return builder.constant(0, kind)
    if is_pointer(kind):
        return builder.create(tt.IntToPtrOp, (builder.constant(0, like(kind, i64)),), (kind,)).results[0]
    return poison(builder, (kind,))[0]  # a descriptor, a buffer: there is no such thing as nothing of its kind
