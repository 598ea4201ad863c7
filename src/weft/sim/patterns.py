"""What accesses of memory count: bytes, sectors, wavefronts; and that an access counts again what it counted last.

    first     lanes at 4096, 4100, 4104, ...      4 sectors
    next      lanes at 8192, 8196, 8200, ...      the same distances from the first lane, which begins a sector again: 4

What a warp's access counts depends on how far its lanes are from each other and on where the first of them is within a
sector, or within a row of the banks. An iteration of a loop, and a program of a grid, mostly does what the one before
it did further on in memory, so that it is compared with that one instead of being counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.ir.lane import LaneOp, LaneProgram
from weft.machines import Machine

from .contexts import Access
from .memory import SECTOR, lines_of, sectors_of, wavefronts_of
from .values import Array

__all__ = ["FOR_ESTIMATES", "Patterns", "counts_of"]

FOR_ESTIMATES = ("_lines", "_distinct")
"""How the names of counters end that only estimates of time need."""


def counts_of(
    space: str, verb: str, address: Array, active: Array, width: int, machine: Machine
) -> dict[str, Array]:
    """The counters of an access, of each warp: address and active are [warp, lane, register]."""
    warps, lanes = len(address), address.shape[1]
    places, valid = (np.moveaxis(x, 1, 2).reshape(-1, lanes) for x in (address, active))  # [access, lane]
    found = {f"{space}_{verb}_bytes": np.count_nonzero(valid, axis=1) * width}
    if space == "global":
        found[f"global_{verb}_sectors"] = sectors_of(places, valid)
        found[f"global_{verb}_lines"] = lines_of(places, valid)
        # What an earlier register of the access touched is in the L1 cache.
        found[f"global_{verb}_distinct"] = sectors_of(address.reshape(warps, -1), active.reshape(warps, -1))
    elif space == "shared":
        passes, ideal = wavefronts_of(places, valid, width, verb == "load", machine)
        found |= {f"shared_{verb}_wavefronts": passes, "shared_ideal": ideal}
    return {name: np.asarray(each.reshape(warps, -1).sum(axis=1)) for name, each in found.items()}


@dataclass(frozen=True)
class _Pattern:
    """An access by some warps as it was counted."""

    parts: tuple[Array, ...]
    """Of each warp, [warp, lane, register]: where its first lane is in a sector, or in a row of the banks; how far each
    address is from that lane's; and which lanes take part."""
    counts: Mapping[str, Array]
    """Of each warp."""

    def groups(self, parts: tuple[Array, ...]) -> int:
        """How many groups of as many warps these warps are that do the same; 0 if they do something else."""
        each, warps = len(self.parts[0]), len(parts[0])
        return warps // each if not warps % each and _repeat(parts, self.parts) else 0


def _repeat(parts: tuple[Array, ...], ones: tuple[Array, ...]) -> bool:
    """Whether these are several times those."""
    if parts[1].shape[1:] != ones[1].shape[1:]:
        return False
    return all(bool((x.reshape(-1, *one.shape) == one).all()) for x, one in zip(parts, ones, strict=True))


class Patterns:
    """What the accesses of a program have counted, of each the last."""

    def __init__(self) -> None:
        self._last: dict[tuple[LaneOp, str, int, str, int], _Pattern] = {}

    def counts(self, access: Access, verb: str, program: LaneProgram) -> tuple[Mapping[str, Array], int]:
        """The counters of an access, of each of the first warps, and how many times as many count the same again."""
        machine, warps = program.machine, len(access.address)
        period = SECTOR if access.space == "global" else machine.banks * machine.bank_bytes
        first = access.address[:, :1, :1]
        parts = first % period, access.address - first, access.active
        key = access.op, access.space, access.number, verb, access.width
        last = self._last.get(key)
        groups = last.groups(parts) if last is not None else 0
        if last is None or not groups:
            one = tuple(x[: program.warps] for x in parts)
            each = program.warps if warps % program.warps == 0 and _repeat(parts, one) else warps
            counts = counts_of(access.space, verb, access.address[:each], access.active[:each], access.width, machine)
            # The arrays are copied, so that a view does not keep those of all warps.
            last = self._last[key] = _Pattern(tuple(np.array(x[:each]) for x in parts), counts)
            groups = warps // each
        return last.counts, groups
