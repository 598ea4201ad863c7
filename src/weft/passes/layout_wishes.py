"""The layouts that a group of tiles may have: those that operations wish for, and their images in neighbouring groups.

    %x = tt.load %p                    wishes for [1, 8] elements of a thread: a way for %x to lie
    %s = tt.reduce %x {axis = 1}       a link: what %x has without axis 1 is a way for %s
    %v = tt.expand_dims %s {axis = 1}  a view, which is computed again for each user
    %y = arith.mulf %x, broadcast %v   two links: from %y to %s, its column; from %s to %y, where %s is a slice of it

Links are followed until no new layout is found. Ways are ordered by preference, which decides between equal prices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from weft.ir import shape_of

from .natural_layouts import AnyLayout, linear_of

PRODUCT, REDUCTION, SPREAD, LOAD, STORE, VIEW = 6, 5, 4, 3, 2, 1
"""Who is preferred where ways cost the same."""
MOST_WAYS = 6
"""Ways of a group, at most: prices of pairs are computed for all of both."""

Leader = SSAValue


@dataclass(frozen=True, eq=False)
class Wanted:
    """A layout that an operation wishes for."""

    by: Operation
    rank: int
    layout: AnyLayout
    source: tuple[Leader, AnyLayout] | None = None
    """The neighbour and the layout of which this is the image; None if the operation itself asks for it."""


@dataclass(frozen=True, eq=False)
class Link:
    """What a layout of one group's tiles is for another's; `seen` gives None where it is nothing."""

    by: Operation
    rank: int
    target: SSAValue
    seen: Callable[[AnyLayout], AnyLayout | None]


class Wishes:
    """Ways for groups to lie, while they are found."""

    def __init__(self, find: Callable[[SSAValue], Leader]) -> None:
        self._find = find
        self.of: dict[Leader, list[Wanted]] = {}
        """All wishes of a group, those for the same layout as well."""
        self._ways: dict[Leader, list[Wanted]] = {}
        self._links: dict[Leader, list[Link]] = {}
        self._given: dict[Leader, AnyLayout] = {}
        self._new: list[tuple[Leader, AnyLayout]] = []

    def want(self, value: SSAValue, wanted: Wanted) -> None:
        """An operation wishes for a layout of a tile's group."""
        leader = self._find(value)
        self.of.setdefault(leader, []).append(wanted)
        ways = self._ways.setdefault(leader, [])
        if any(alike(way.layout, wanted.layout, shape_of(leader.type)) for way in ways):
            return
        if len(ways) < MOST_WAYS:
            ways.append(wanted)
            self._new.append((leader, wanted.layout))

    def is_of(self, value: SSAValue, rank: int) -> bool:
        """Whether an operation of a rank wishes for a layout of a tile's group."""
        return any(wanted.rank == rank for wanted in self.of.get(self._find(value), ()))

    def link(self, source: SSAValue, link: Link) -> None:
        """What a group's ways are for another group."""
        leader = self._find(source)
        if self._find(link.target) is not leader:
            self._links.setdefault(leader, []).append(link)

    def follow(self) -> None:
        """Follow links until nothing is new."""
        for leader, layout in self._new:  # which grows
            for link in self._links.get(leader, ()):
                seen = link.seen(layout)
                if seen is not None:
                    self.want(link.target, Wanted(link.by, link.rank, seen, (leader, layout)))
        self._new.clear()

    def give(self, leader: Leader, layout: AnyLayout) -> None:
        """A layout for a group for which nobody wishes any."""
        self._given[leader] = layout
        self._new.append((leader, layout))

    def only(self, value: SSAValue, wanted: Wanted) -> None:
        """Nothing but this layout, unless a product or a reduction wishes for another."""
        leader = self._find(value)
        stronger = [x for x in self._ways.get(leader, ()) if x.rank > SPREAD]
        self._ways[leader] = [*stronger, wanted]

    def ways(self, leader: Leader) -> list[AnyLayout]:
        """The ways of a group, the preferred one first."""
        given = self._given.get(leader)
        ways = sorted(self._ways.get(leader, ()), key=lambda x: -x.rank)
        return [given] if given is not None else [x.layout for x in ways]


def alike(a: AnyLayout, b: AnyLayout, shape: Sequence[int]) -> bool:
    """Whether two layouts are one for tiles of a shape, whatever they are called."""
    return a is b or a == b or linear_of(a, shape) == linear_of(b, shape)
