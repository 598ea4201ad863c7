"""What a value is computed of, the first of it first: for analyses that ask of the operands by recursion.

A kernel may compute an index in thousands of steps, and Python's stack has room for a thousand calls. So where an
analysis is `DEEP` calls deep, it asks of everything below in this order, and every question finds its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Final, TypeVar

from xdsl.ir import OpResult, SSAValue

__all__ = ["DEEP", "operands_first", "parts_first"]

DEEP: Final = 50
T = TypeVar("T")


def parts_first(start: T, computed: Container[T], parts: Callable[[T], Sequence[T]]) -> list[T]:
    """`start` and what it is made of and is not known, the first of it first; each of its parts may use another twice.

    >>> parts_first(3, {0}, lambda n: (n - 1, n - 1))
    [1, 2, 3]
    """
    order: dict[T, None] = {}
    stack = [(start, False)]
    while stack:
        item, finished = stack.pop()
        if finished:
            order[item] = None
        elif item not in order and item not in computed:
            stack.append((item, True))
            stack.extend((part, False) for part in reversed(parts(item)))
    return list(order)


def operands_first(value: SSAValue, wanted: Callable[[OpResult], bool]) -> list[OpResult]:
    """The wanted results of operations that a value is computed of, without itself; not through those unwanted."""
    assert isinstance(value, OpResult)
    return parts_first(value, (), lambda x: [v for v in x.op.operands if isinstance(v, OpResult) and wanted(v)])[:-1]
