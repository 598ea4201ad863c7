"""Tables: those that functions enter by a decorator, in the file that defines them, and those that are text files.

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

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["data_lines", "registry"]

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


def data_lines(module: str, file: str) -> list[str]:
    """The lines of a text file that lies beside a module, without those that begin with `#`."""
    spec: Any = sys.modules[module].__spec__  # by its loader: the package may be an archive
    text: str = spec.loader.get_data(os.path.join(os.path.dirname(spec.origin), file)).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]
