"""Decide by way of which shared memory the copy engine stores tiles: buffers of their own, or a slot of the ring.

The buffers of a loop of products form a ring, and each buffer of their own that stores get may cost the ring a slot.
Tiles of 224 x 192 bf16 on a multiprocessor with 227 KB:

    slots of 52 KB    for stores                                                                  slots
    8 tiles           84 KB: a buffer for each                                                      2
    in turn           16 KB: one buffer, and each store waits until the copy engine has read it     4
    a slot            nothing: four buffers of 48 KB in all are in a slot that is empty             4

While the slot holds tiles, the others are filled with operands of the next tile. On an H200, a product of 5000 x 2056
x 1544 takes 54.1 us this way, 55.0 with one buffer, and 56.4 with a buffer for each type in fewer slots.

A slot is not used if each warp stores its own rows without waiting for the others, because all of them must have read
the slot before. Tiles of 256 x 192 then take 59.7 us with four slots, and 58.6 with three and buffers of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bulk_loads import BulkLoad
from .bulk_stores import BulkStore
from .side_by_side import Row


@dataclass(frozen=True)
class Place:
    """Where a buffer is in a slot: where the tile of a load begins, or some buffers of its size further on."""

    load: BulkLoad
    number: int


@dataclass(frozen=True)
class Staging:
    """Buffers by way of which tiles are stored."""

    buffers: tuple[int, ...]
    """The number of the buffer of each store."""
    places: Mapping[int, Place] | None = None
    """Where each buffer is in a slot; None if the buffers have memory of their own."""

    @property
    def is_in_slot(self) -> bool:
        """Whether the buffers are in a slot of the ring."""
        return self.places is not None

    def own_bytes(self, stores: Sequence[BulkStore]) -> int:
        """Bytes of shared memory for these buffers alone."""
        return 0 if self.is_in_slot else _bytes(stores, self.buffers)


NO_STAGING = Staging(())


def ways_to_store(stores: Sequence[BulkStore], loads: Sequence[BulkLoad], rows: Sequence[Row]) -> Sequence[Staging]:
    """Ways to assign buffers to stores, the best first if all leave as many slots.

    They are a buffer for each store; a buffer for each type of a loop; and, if all warps wait for each store anyway, as
    many buffers as a slot has room for, into which `loads` go, or fewer and fewer buffers that the stores take in turn,
    whatever their types. Warps wait least with those that need the most memory.
    """
    if not stores:
        return ()
    kinds = [(x.store.parent, x.memory()) for x in stores]
    apart = [tuple(range(len(stores))), tuple(map(list(dict.fromkeys(kinds)).index, kinds))]
    in_turn: list[tuple[int, ...]] = []
    in_slot: list[Staging] = []
    all_wait = len({x.store.parent for x in stores}) == 1 and all(x.part is None for x in stores)
    if all_wait:
        in_turn = [tuple(i % count for i in range(len(stores))) for count in range(len(stores) - 1, 0, -1)]
    ways = sorted([*apart, *in_turn], key=lambda way: -_bytes(stores, way))
    if all_wait:
        in_slot = [Staging(way, places) for way in ways if (places := _places(stores, way, loads, rows)) is not None]
    least = 1 + max(i for i, way in enumerate(ways) if way in apart)
    return [*map(Staging, ways[:least]), *in_slot[:1], *map(Staging, ways[least:])]


def _bytes(stores: Sequence[BulkStore], buffers: Sequence[int]) -> int:
    return sum(x.bytes for x in largest_by_way_of(stores, buffers).values())


def largest_by_way_of(stores: Sequence[BulkStore], buffers: Sequence[int]) -> dict[int, BulkStore]:
    """For each buffer, the store that needs the most of it."""
    found: dict[int, BulkStore] = {}
    for number, x in zip(buffers, stores, strict=True):
        found[number] = max(found.get(number, x), x, key=lambda x: x.bytes)
    return found


def pending_copies(buffers: Sequence[int], loops: Sequence[object]) -> list[int]:
    """For stores of some loops that go by way of some buffers: how many of the last copies that were begun may still
    read, because they surely read other buffers. Only stores of the same loop are known to come between.

    >>> pending_copies([0, 1], "ii"), pending_copies([0, 0], "ii"), pending_copies([0, 0, 1], "iii")
    ([1, 1], [0, 0], [1, 0, 2])
    >>> pending_copies([0, 1], "ij")
    [0, 0]
    """
    found = []
    for i, loop in enumerate(loops):
        those = [k for k, other in enumerate(loops) if other is loop]
        before = [buffers[k] for k in (*those[those.index(i) :], *those[: those.index(i)])][::-1]
        found.append(before.index(buffers[i]))
    return found


def _places(
    stores: Sequence[BulkStore], buffers: Sequence[int], loads: Sequence[BulkLoad], rows: Sequence[Row]
) -> Mapping[int, Place] | None:
    """Where the buffers are in a slot, the largest first; None if there is no room.

    Sizes are powers of two, so each buffer begins at a multiple of its size from where the tile of a load does. A
    swizzle begins anew where that of a load does if it is not longer.
    """
    sizes = _adjacent(loads, rows)
    used = dict.fromkeys(sizes, 0)
    places: dict[int, Place] = {}
    for number, x in sorted(largest_by_way_of(stores, buffers).items(), key=lambda item: -item[1].bytes):
        aligned = (load for load in sizes if load.copied.swizzle_byte_width >= x.layout.swizzle_byte_width)
        load = next((load for load in aligned if used[load] + x.bytes <= sizes[load]), None)
        if load is None:
            return None
        places[number] = Place(load, used[load] // x.bytes)
        used[load] += x.bytes
    return places


def _adjacent(loads: Sequence[BulkLoad], rows: Sequence[Row]) -> dict[BulkLoad, int]:
    """The loads whose tiles are the first of those that are adjacent in a slot, and the bytes of these."""
    sizes = {x: x.bytes for x in loads}
    for row in rows:
        if row.operands and all(x in sizes for x in row.loads):
            first, *others = row.loads
            sizes[first] += sum(sizes.pop(x) for x in others)
    return sizes
