"""triton.tools.triton_to_gluon_translator.ordered_set: a set that remembers in which order its elements came.

>>> found = ordered_set([3, 1, 3])
>>> found.add(2)
>>> list(found), found[-1], found == {1, 2, 3}
([3, 1, 2], 2, True)
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, MutableSet
from typing import TypeVar

T = TypeVar("T")


class ordered_set(MutableSet[T]):
    """The keys of a dictionary."""

    def __init__(self, elements: Iterable[T] | None = None) -> None:
        self._keys = dict.fromkeys(elements or ())

    def add(self, value: T) -> None:
        """Put an element at the end, unless it is in already."""
        self._keys.setdefault(value)

    def update(self, values: Iterable[T]) -> None:
        """Put elements at the end."""
        for value in values:
            self.add(value)

    def discard(self, value: T) -> None:
        """Take an element out, if it is in."""
        self._keys.pop(value, None)

    def __contains__(self, value: object) -> bool:
        return value in self._keys

    def __iter__(self) -> Iterator[T]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __getitem__(self, index: int) -> T:
        return list(self._keys)[index]

    def __add__(self, other: Iterable[T]) -> ordered_set[T]:
        return ordered_set(itertools.chain(self, other))

    def __repr__(self) -> str:
        return f"ordered_set({list(self._keys)})"
