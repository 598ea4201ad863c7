"""Checks of the parameters of named layouts: each returns the value in its canonical form or raises LayoutError.

The messages name the class and the parameter, quote what was found and say what would be legal.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np

from weft.base import LayoutError

LARGEST = 1 << 30
"""What no parameter of a layout is greater than."""


class ElementType(Protocol):
    """An element type, as far as layouts need one."""

    @property
    def primitive_bitwidth(self) -> int: ...


def element_bits(owner: str, name: str, value: ElementType | int) -> int:
    """The width in bits of an element, given its type or the width."""
    return one_of(owner, name, getattr(value, "primitive_bitwidth", value), (8, 16, 32, 64))


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def _is_power_of_two(value: Any) -> bool:
    return _is_int(value) and value > 0 and value & (value - 1) == 0


def _nearest(value: Any) -> str | None:
    """The powers of two beside a number, as a way out."""
    if not _is_int(value):
        return None
    below = 1 << (int(value).bit_length() - 1) if value > 0 else 0
    return f"the nearest are {below} and {2 * below}" if below else "the smallest is 1"


def unwrapped(value: Any) -> Any:
    """The value of a `tl.constexpr`, such as a layout that is a constant of a module; anything else as it is."""
    return value.value if type(value).__name__ == "constexpr" else value


def sequence(owner: str, name: str, value: Any) -> tuple[Any, ...]:
    """A list, as a tuple."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (tuple, list, Sequence)) or isinstance(value, (str, bytes)):
        raise LayoutError(f"{owner}: {name} must be a list, got {value!r}")
    return tuple(value)


def integer(owner: str, name: str, value: Any, low: int, high: int) -> int:
    """An int from `low` to `high`, both included."""
    if not _is_int(value) or not low <= value <= high:
        raise LayoutError(f"{owner}: {name} must be an integer from {low} to {high}, got {value!r}")
    return int(value)


def power_of_two(owner: str, name: str, value: Any) -> int:
    """A power of two."""
    if not _is_power_of_two(value):
        raise LayoutError(f"{owner}: {name} must be a power of two, got {value!r}", hint=_nearest(value))
    _bounded(owner, name, value)
    return int(value)


def _bounded(owner: str, name: str, value: int) -> None:
    """Offsets and coordinates are computed in 64 bits."""
    if value > LARGEST:
        raise LayoutError(f"{owner}: {name} must be at most {LARGEST}, got {value!r}")


def one_of(owner: str, name: str, value: Any, legal: Collection[int]) -> int:
    """One of a few values."""
    if isinstance(value, (bool, np.bool_)) or value not in legal:
        raise LayoutError(f"{owner}: {name} must be one of {', '.join(map(str, legal))}, got {value!r}")
    return int(value)


def word(owner: str, name: str, value: Any, legal: Collection[str]) -> str:
    """One of a few words."""
    if value not in legal:
        raise LayoutError(f"{owner}: {name} must be one of {', '.join(legal)}, got {value!r}")
    return str(value)


def flag(owner: str, name: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise LayoutError(f"{owner}: {name} must be True or False, got {value!r}")
    return bool(value)


def sizes(owner: str, name: str, value: Any, rank: int | None = None, like: str = "") -> tuple[int, ...]:
    """A power of two for each dimension; `like` names the parameter that says how many there are."""
    values = sequence(owner, name, value)
    if rank is None and not values:
        raise LayoutError(f"{owner}: {name} is empty; it needs a power of two for each dimension of the tile")
    if rank is not None and len(values) != rank:
        raise LayoutError(
            f"{owner}: {name} has {len(values)} entries {list(values)}, expected {rank}"
            + (f", as {like}" if like else "")
        )
    for size in values:
        if not _is_power_of_two(size):
            raise LayoutError(
                f"{owner}: the entries of {name} must be powers of two, got {size!r} in {list(values)}",
                hint=_nearest(size),
            )
        _bounded(owner, f"an entry of {name}", size)
    return tuple(int(size) for size in values)


def permutation(owner: str, name: str, value: Any, rank: int | None = None) -> tuple[int, ...]:
    """Every dimension once, the fastest first."""
    values = sequence(owner, name, value)
    expected = list(range(len(values) if rank is None else rank))
    if not values or not all(map(_is_int, values)) or sorted(values) != expected:
        dims = ", ".join(map(str, expected)) or "0, 1, ..."
        raise LayoutError(
            f"{owner}: {name} must have each of the dimensions {dims} once, got {list(values)}",
            hint=f"{expected[::-1]} makes the last dimension the fastest" if expected else None,
        )
    return tuple(int(dim) for dim in values)


def bases(owner: str, name: str, value: Any, rank: int) -> tuple[tuple[int, ...], ...]:
    """A list of bases, each a coordinate of 0 or more for every dimension."""
    checked = []
    for basis in sequence(owner, name, value):
        coordinates = sequence(owner, f"a basis of {name}", basis)
        if len(coordinates) != rank:
            raise LayoutError(
                f"{owner}: the basis {list(coordinates)} of {name} has {len(coordinates)} coordinates, expected "
                f"{rank}, one for each dimension"
            )
        if not all(_is_int(c) and c >= 0 for c in coordinates):
            raise LayoutError(f"{owner}: the coordinates in {name} must be integers from 0 on, got {list(coordinates)}")
        _bounded(owner, f"a coordinate in {name}", max(coordinates, default=0))
        checked.append(tuple(int(c) for c in coordinates))
    return tuple(checked)


def shape_of(owner: str, value: Any, rank: int) -> tuple[int, ...]:
    """The shape of a tile."""
    values = sequence(owner, "the shape of the tile", value)
    if len(values) != rank:
        raise LayoutError(
            f"{owner}: a layout of rank {rank} for a tile of rank {len(values)}, of shape {list(values)}",
            hint="give its parameters one entry for each dimension of the tile"
            if len(values) > rank
            else "SliceLayout(dim, parent) is a layout with a dimension less than its parent",
        )
    for size in values:
        if not _is_power_of_two(size):
            raise LayoutError(
                f"{owner}: a tile's sizes must be powers of two, got {size!r} in {list(values)}", hint=_nearest(size)
            )
        _bounded(owner, "a size of the tile", size)
    return tuple(int(size) for size in values)
