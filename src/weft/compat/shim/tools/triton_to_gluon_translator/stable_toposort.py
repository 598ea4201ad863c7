"""triton.tools.triton_to_gluon_translator.stable_toposort: users before what they use, else in the given order.

>>> stable_toposort({0: [2], 1: [0], 2: [], 3: []})      # 1 uses 0, which uses 2
[1, 3, 0, 2]
>>> stable_toposort({5: [0], 0: [1], 1: [0]})            # 0 and 1 use each other
[5, 0, 1]
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


def stable_toposort(edges: Mapping[int, Collection[int]]) -> list[int]:
    """The nodes, each before those that it has edges to, unless they lie on a circle; that stays together.

    Circles count as one node, whose place in the given order is that of its first.
    """
    place = {node: i for i, node in enumerate(edges)}
    reached = {node: _reached(edges, node) for node in edges}
    circle = {
        node: min((n for n in reached[node] if node in reached[n]), key=place.__getitem__, default=node)
        for node in edges
    }
    after = {
        first: {circle[n] for node in edges if circle[node] == first for n in edges[node]} - {first}
        for first in dict.fromkeys(circle.values())
    }
    users = {first: sum(first in later for later in after.values()) for first in after}
    ready = sorted((first for first, count in users.items() if not count), key=place.__getitem__)
    for first in ready:
        for later in sorted(after[first], key=place.__getitem__):
            users[later] -= 1
            if not users[later]:
                ready.append(later)
    return [node for first in ready for node in edges if circle[node] == first]


def _reached(edges: Mapping[int, Collection[int]], start: int) -> set[int]:
    """The nodes that a path leads to; the node itself among them only if it lies on a circle."""
    reached: set[int] = set()
    open_ends = [start]
    while open_ends:
        fresh = set(edges[open_ends.pop()]) - reached
        reached |= fresh
        open_ends += fresh
    return reached
