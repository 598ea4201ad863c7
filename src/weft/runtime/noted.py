"""What a compilation was for, noted when it begins: little, as every launch that compiles does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .warned import users_line

__all__ = ["Noted", "noted"]


class Noted(NamedTuple):
    """One compilation: where it was asked for, and each argument's value and class."""

    file: str
    line: int
    target: str
    options: tuple[tuple[str, str], ...]
    values: tuple[str, ...]
    classes: tuple[tuple[Any, Any], ...]


def noted(args: Sequence[Any], classes: Sequence[tuple[Any, Any]], options: Mapping[str, Any], target: str) -> Noted:
    """The notes of a compilation; arrays are named by their type, as they are not to be kept."""
    values = tuple(repr(a) if a is None or isinstance(a, (bool, int, float, str)) else type(a).__name__ for a in args)
    told = tuple((name, str(value)) for name, value in options.items())
    return Noted(*users_line(), target, told, values, tuple(classes))
