"""The order in which to ask about a value that is computed in many steps, each of which may use another twice."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TypeVar

T = TypeVar("T")


def operands_first(start: T, known: Container[T], parts: Callable[[T], Sequence[T]]) -> list[T]:
    """`start` and what it is made of and is not known, operands first: an index may be computed in thousands of steps,
    each of which uses the one before it twice.

    >>> operands_first(3, {0}, lambda n: (n - 1, n - 1))
    [1, 2, 3]
    """
    order: dict[T, None] = {}
    stack = [(start, False)]
    while stack:
        item, finished = stack.pop()
        if finished:
            order[item] = None
        elif item not in order and item not in known:
            stack.append((item, True))
            stack.extend((part, False) for part in reversed(parts(item)))
    return list(order)
