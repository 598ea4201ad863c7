"""What a plan has to know of a machine: its shared memory, its instructions for moving tiles, and what they cost.

Costs are in cycles of one multiprocessor for one warp instruction, as far as they are known; a plan is chosen by their
sum. They are data: a target with other figures gets other plans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.base import LayoutError

__all__ = ["MACHINES", "Machine", "machine_of"]


@dataclass(frozen=True)
class Machine:
    """A GPU as the planner sees it."""

    name: str
    lanes: int = 32
    banks: int = 32
    """Banks of shared memory, 4 bytes wide each."""
    vector_bytes: int = 16
    """The most that one lane loads from or stores to shared memory at once."""
    ldmatrix: bool = False
    stmatrix: bool = False
    shared_bytes: int = 48 * 1024
    """Scratch memory that a conversion may use before it is done in repetitions."""

    select: float = 0.5
    permute: float = 0.75
    """A byte permutation: what packs elements in words, and takes them out."""
    shuffle: float = 2.0
    wavefront: float = 2.0
    access: float = 1.0
    """Issuing one load or store, beside its wavefronts."""
    wait: float = 0.25
    """Keeping a word that was loaded until others come that it is used with."""
    address: float = 1.0
    """One address that cannot be an immediate offset from another."""
    warp_barrier: float = 8.0
    block_barrier: float = 30.0
    cluster_barrier: float = 200.0
    trip: float = 23.0
    """The latency of a trip through shared memory that nothing hides."""

    def narrow(self, bytes: int) -> float:
        """What it takes to put what one access moves into its place in a word, where that is less than a word."""
        return self.permute * (4 - bytes) / 4 if bytes < 4 else 0.0

    def instructions(self, counted: Mapping[str, int], packed: int) -> float:
        """What instructions by kind cost; 2 ** packed elements are put in each word, and taken out again.

        To put four bytes that lie in four words in one takes two permutations, where the four words are made so.
        """
        price = {"shuffle": self.shuffle, "permute": self.permute, "pack": self.permute * packed}
        price["unpack"] = self.permute * packed / (1 << packed)
        return sum(n * price.get(kind, self.select) for kind, n in counted.items())

    def waiting(self, scope: str, repetitions: int = 1) -> float:
        """What a trip through shared memory costs besides moving: its barriers, and latency that nothing hides."""
        barriers = {"warp": self.warp_barrier, "block": self.block_barrier, "cluster": self.cluster_barrier}
        return barriers[scope] * (2 * repetitions - 1) + self.trip * repetitions


MACHINES = {
    m.name: m
    for m in (
        Machine("cuda:75", ldmatrix=True, shared_bytes=64 * 1024),
        Machine("cuda:80", ldmatrix=True, shared_bytes=163 * 1024),
        Machine("cuda:86", ldmatrix=True, shared_bytes=99 * 1024),
        Machine("cuda:89", ldmatrix=True, shared_bytes=99 * 1024),
        Machine("cuda:90", ldmatrix=True, stmatrix=True, shared_bytes=227 * 1024),
        Machine("cuda:100", ldmatrix=True, stmatrix=True, shared_bytes=227 * 1024),
        Machine("hip:gfx942", lanes=64, shared_bytes=64 * 1024),
        Machine("hip:gfx950", lanes=64, banks=64, shared_bytes=160 * 1024),
        Machine("hip:gfx1100", shared_bytes=64 * 1024),
        Machine("xpu:pvc", lanes=16, shared_bytes=64 * 1024),
    )
}
"""Machines by the name of their target."""


def machine_of(target: Machine | str) -> Machine:
    """The machine of a target's name; a `Machine` is itself."""
    if isinstance(target, Machine):
        return target
    found = MACHINES.get(target.removeprefix("sim:")) if isinstance(target, str) else None
    if found is None:
        raise LayoutError(
            f"the planner knows no machine {target!r}", hint=f"known are {', '.join(MACHINES)}; or pass a Machine"
        )
    return found
