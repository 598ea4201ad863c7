"""Tables that functions enter by a decorator, in the file that defines them.

>>> AREAS: dict[str, Callable[[float], float]] = {}
>>> area = registry(AREAS)
>>> @area("square", "tile")
... def _square(side):
...     return side * side
>>> AREAS["tile"](3)
9
>>> area("square")(abs)
Traceback (most recent call last):
ValueError: square is registered twice
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["registry"]

K = TypeVar("K")
F = TypeVar("F", bound=Callable[..., Any])


def registry(table: dict[K, F]) -> Callable[..., Callable[[F], F]]:
    """The decorator that enters a function under one or more keys; each key has one function."""

    def registered(*keys: K) -> Callable[[F], F]:
        def register(function: F) -> F:
            for key in keys:
                if key in table:
                    raise ValueError(f"{getattr(key, '__name__', key)} is registered twice")
                table[key] = function
            return function

        return register

    return registered
