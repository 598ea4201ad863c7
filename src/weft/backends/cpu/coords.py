"""Where in a tile: coordinates as bits of the nest's iteration index.

Every tile extent is a power of two, so an element of an iteration space of 2^n points is n bits, and every shape
operation (trans, reshape, broadcast, expand_dims, join, split) only moves, drops or fixes bits: it is a linear map over
F2 whose basis vectors are unit vectors or zero. A coordinate is a tuple of *sources*, least significant bit first; a
tile's coordinates are one such tuple for each dimension. A source is

    k >= 0          bit k of the iteration index (bit 0 moves fastest in row-major order)
    ZERO, ONE       a constant
    pinned(k, v)    bit k of the iteration index, unrolled: known to be v in this copy of the body

so that composing index maps is list surgery at compile time and no element is ever moved for a shape operation.

    >>> coords = row_major((4, 8))           # row-major: columns are bits 0..2, rows bits 3..4
    >>> coords
    ((3, 4), (0, 1, 2))
    >>> reshaped(coords, (2, 16))           # the same elements seen as a 2x16 tile
    ((4,), (0, 1, 2, 3))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

ZERO, ONE = -1, -2

Coord: TypeAlias = tuple[int, ...]
Coords: TypeAlias = tuple[Coord, ...]


def log2(n: int) -> int:
    """The exponent of a power of two."""
    return n.bit_length() - 1


def pinned(bit: int, value: int) -> int:
    """The source for iteration bit `bit` where its value is known."""
    return -(10 + 2 * bit + value)


def constant_of(source: int) -> int:
    """The value of a constant source."""
    if source > -10:
        return 0 if source == ZERO else 1
    return (-source - 10) & 1


def pinned_bit(source: int) -> int | None:
    """The iteration bit that a pinned source stands for."""
    return (-source - 10) >> 1 if source <= -10 else None


def row_major(shape: Sequence[int]) -> Coords:
    """The coordinates of a tile in its own iteration space; also the offset bits of a plain buffer."""
    result: list[Coord] = []
    position = 0
    for size in reversed(shape):
        width = log2(size)
        result.append(tuple(range(position, position + width)))
        position += width
    return tuple(reversed(result))


def flat(coords: Coords) -> Coord:
    """All bits as one row-major index."""
    return tuple(s for coord in reversed(coords) for s in coord)


def reshaped(coords: Coords, shape: Iterable[int]) -> Coords:
    """The coordinates, in a tile of `shape`, of the same row-major position."""
    bits = flat(coords)
    result: list[Coord] = []
    position = 0
    for size in reversed(tuple(shape)):
        width = log2(size)
        result.append(bits[position : position + width])
        position += width
    return tuple(reversed(result))


def live_bits(coords: Coords) -> set[int]:
    """The iteration bits the coordinates depend on."""
    return {s for coord in coords for s in coord if s >= 0}


def substitute(coords: Coords, mapping: Mapping[int, int]) -> Coords:
    """Replace sources."""
    return tuple([tuple([mapping.get(s, s) for s in coord]) for coord in coords]) if mapping else coords


def unpin(coords: Coords, bits: Iterable[int]) -> Coords:
    """Make the pinned sources of these iteration bits live again."""
    wanted = set(bits)
    return tuple(tuple(b if (b := pinned_bit(s)) is not None and b in wanted else s for s in coord) for coord in coords)


def broadcast_coords(shape: Sequence[int], coords: Coords) -> Coords:
    """The coordinates in a tile of `shape` (ones allowed) of a place in the tile it is broadcast to."""
    return tuple(() if size == 1 else coord for size, coord in zip(shape, coords, strict=True))


def trans_coords(order: Sequence[int], coords: Coords) -> Coords:
    """Result dimension i is source dimension order[i]."""
    source: list[Coord] = [()] * len(order)
    for i, o in enumerate(order):
        source[o] = coords[i]
    return tuple(source)
