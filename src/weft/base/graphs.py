"""Going through what leads to more: values and what they are made of, blocks and where they branch to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

__all__ = ["each_once", "postorder"]

T = TypeVar("T")


def each_once(todo: list[T]) -> Iterator[T]:
    """Take things from the end of a list until it is empty, each thing once; meanwhile more may be put there.

    >>> todo, found = [12], []
    >>> for number in each_once(todo):
    ...     found.append(number)
    ...     todo += [number // 2, number // 3] if number > 2 else []
    >>> found
    [12, 4, 1, 2, 6, 3]
    """
    seen = set[T]()
    while todo:
        thing = todo.pop()
        if thing not in seen:
            seen.add(thing)
            yield thing


def postorder(first: T, following: Callable[[T], Iterable[T]]) -> list[T]:
    """All that is reached from something, each after what it leads to, but for those on a way back to itself.

    >>> postorder(1, lambda n: [n + 1, n + 2] if n < 4 else [1])
    [4, 5, 3, 2, 1]
    """
    order, seen, stack = list[T](), {first}, [(first, iter(following(first)))]
    while stack:
        thing, rest = stack[-1]
        for other in rest:
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(following(other))))
                break
        else:
            order.append(thing)
            stack.pop()
    return order
