"""Named dimensions whose sizes are powers of two: an index is one int, the bits of the first dimension lowest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from weft.base import LayoutError

Dims = tuple[tuple[str, int], ...]
"""Names with the binary logarithm of their sizes."""


def exact_log2(size: int, subject: str) -> int:
    """The binary logarithm of a size; LayoutError unless it is a power of two."""
    if not isinstance(subject, str):
        raise LayoutError(f"the name of a dimension must be a string, got {subject!r}")
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1 or size & (size - 1):
        raise LayoutError(f"the size of {subject} must be a power of two, got {size!r}")
    return int(size).bit_length() - 1


def coordinates_of(number: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Where an element stands that has a number in row-major order; beyond the end it begins again.

    >>> coordinates_of(7, (2, 5))
    (1, 2)
    """
    coordinates = []
    for size in reversed(sizes):
        coordinates.append(number % size)
        number //= size
    return tuple(reversed(coordinates))


def names_of(dims: Dims) -> str:
    """For messages: the names, in parentheses."""
    return "(" + ", ".join(name for name, _ in dims) + ")"


def sizes_of(dims: Dims) -> str:
    """For messages: names and sizes."""
    return ", ".join(f"{name} of size {1 << log}" for name, log in dims) or "no dimension"


def total_of(dims: Dims) -> int:
    """How many bits they have together."""
    return sum(log for _, log in dims)


def starts_of(dims: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Where each dimension's bits begin."""
    starts, at = {}, 0
    for name, log in dims:
        starts[name] = at
        at += log
    return starts


def placed(vector: int, dims: Dims, starts: Mapping[str, int]) -> int:
    """An index with the bits of each dimension moved to where they begin elsewhere."""
    moved = 0
    for name, log in dims:
        moved |= (vector & (1 << log) - 1) << starts[name]
        vector >>= log
    return moved


def merged_order(first: Sequence[str], second: Sequence[str], side: str) -> list[str]:
    """Both lists in one that keeps the order of each."""
    shared = [n for n in first if n in second]
    if shared != [n for n in second if n in first]:
        raise LayoutError(
            f"the {side} dimensions {', '.join(first)} and {', '.join(second)} are in conflicting orders",
            hint=f"transpose_{'ins' if side == 'input' else 'outs'} gives one of the layouts the order of the other",
        )
    result: list[str] = []
    rest = list(second)
    for name in first:
        if name in rest:
            while rest[0] != name:
                result.append(rest.pop(0))
            rest.pop(0)
        result.append(name)
    return result + rest
