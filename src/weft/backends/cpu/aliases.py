"""Which accesses of a kernel may be to the same memory.

A pointer that is made of one parameter stays within that parameter's array, and two arrays are taken not to overlap:
the launcher compares their addresses before each launch, and where they do overlap it runs a variant that was compiled
without that promise. What was taken for granted is noted in `Aliases.pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.backends.cpu.program import Value, element_bits


class Aliases:
    """What a kernel takes for granted about the arrays it is given."""

    def __init__(self, params: Sequence[Value], assume_no_alias: bool) -> None:
        self._params = list(params)
        self._assume_no_alias = assume_no_alias
        self.pairs: dict[tuple[int, int], bool] = {}
        """Two parameters, by number, whose arrays must not overlap; True where they must not be the same either."""

    def may_meet(self, a: Value, b: Value, same_place: bool) -> bool:
        """Whether accesses by two tiles of pointers may be to one address at different points of a nest.

        `same_place` says that both have the same offsets at every point, so that within one array they meet only at
        the same point. Different parameters are taken not to meet, if that may be assumed, and are noted in `pairs`.
        """
        x, y = root_of(a), root_of(b)
        if x is None or y is None or x is y:
            return not (x is not None and same_place)
        if not self._assume_no_alias:
            return True
        i, j = sorted((self._params.index(x), self._params.index(y)))
        self.pairs[(i, j)] = self.pairs.get((i, j), False) or not same_place
        return False


def root_of(value: Value) -> Value | None:
    """The parameter a pointer is derived from, if there is exactly one."""
    seen = 0
    while seen < 1000:
        seen += 1
        op = value.op
        if op is None:
            parent = value.block.parent if value.block else None
            if parent is None:
                return value if value.block is not None and not value.block.predecessors else None
            if parent.name != "scf.for" or value.index == 0:
                return None
            value = parent.args[3 + value.index - 1]
        elif op.name in (
            "tt.addptr",
            "tt.splat",
            "tt.broadcast",
            "tt.expand_dims",
            "tt.reshape",
            "tt.trans",
            "tt.bitcast",
            "tt.split",
        ):
            value = op.args[0]
        elif op.name == "scf.for":
            value = op.args[3 + value.index]
        else:
            return None
    return None


def offset_key(value: Value) -> tuple[Any, ...]:
    """What two address tiles have in common but for the base pointer: equal keys mean equal offsets at equal places."""
    key: list[Any] = []
    for _ in range(1000):
        op = value.op
        if op is None:
            parent = value.block.parent if value.block else None
            key.append("parameter" if parent is None else value)
            return tuple(key)
        if op.name == "tt.addptr":
            key.append(("add", op.args[1], element_bits(value.pointee)))
            value = op.args[0]
        elif op.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"):
            key.append((op.name, value.shape, op.attrs.get("axis")))
            value = op.args[0]
        else:
            key.append(value)
            return tuple(key)
    return (value,)
