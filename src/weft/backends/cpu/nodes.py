"""On which nodes of a machine with several memories (NUMA) the workers run.

    usable_by_node({0, 1, 2, 3, 4, 5, 6, 7})    [{0, 1, 2, 3}, {4, 5, 6, 7}]
    cores_of(7, ..., 2)                         the first three workers on the first node, the other four on the second

A page of memory is near the core that touched it first, and each thread has the same part of a grid in each launch. So
a worker that stays on its node finds near to it what it wrote, and what it read for the first time, in the launch
before; one that the system moved to another node reads all of it from there. Workers are kept to a node, and not to a
core: which core of a node is free the system knows better.

Where fewer threads are wanted than there are cores, nobody is kept to anything: other processes may have as many, and
all would have the same cores.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence, Set


def usable_by_node(allowed: Set[int], root: str = "/") -> list[set[int]]:
    """The cores that may be used, by node; all of them together where nothing is known. `root` is where /sys is."""
    folder = os.path.join(root, "sys/devices/system/node")
    nodes: list[set[int]] = []
    with contextlib.suppress(OSError, ValueError):
        names = [name for name in os.listdir(folder) if name.removeprefix("node").isdigit()]
        for name in sorted(names, key=lambda name: int(name.removeprefix("node"))):
            with open(f"{folder}/{name}/cpulist") as file:
                nodes.append(listed(file.read()) & allowed)
    nodes = [node for node in nodes if node]
    return nodes if set().union(*nodes) == allowed else [set(allowed)]


def listed(text: str) -> set[int]:
    """The numbers of a list as Linux writes them.

    >>> sorted(listed("0-2,8,10-11"))
    [0, 1, 2, 8, 10, 11]
    """
    cores: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cores |= set(range(int(first), int(last or first) + 1))
    return cores


def cores_of(workers: int, nodes: Sequence[Set[int]], caller: int) -> list[set[int]]:
    """The cores of each worker: of one node, if there are as many threads as cores, the caller included, which has one
    of the node that it runs on; else all.

    >>> [sorted(cores) for cores in cores_of(3, [{0, 1}, {2, 3}], 0)]
    [[0, 1], [2, 3], [2, 3]]
    >>> [sorted(cores) for cores in cores_of(3, [{0, 1}, {2, 3}], 2)]
    [[0, 1], [0, 1], [2, 3]]
    >>> cores_of(2, [{0, 1}, {2, 3}], 0)
    [{0, 1, 2, 3}, {0, 1, 2, 3}]
    """
    every = set().union(*nodes)
    if len(nodes) < 2 or workers + 1 != len(every):
        return [every] * workers
    at = next((k for k, node in enumerate(nodes) if caller in node), 0)
    return [set(node) for k, node in enumerate(nodes) for _ in range(len(node) - (k == at))]
