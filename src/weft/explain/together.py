"""How the times that a launch takes of each resource make one time, and how far off it may be.

    units      what all blocks ask of DRAM, caches and the units of multiprocessors, at their rates
    latency    the chain of one block, with what its own warps ask of units, times the rounds of blocks

Blocks that share a multiprocessor fill each other's gaps, so that the longer of both shows, and a part of the other.
What one block asks of units is in its latency already: one that is alone on its multiprocessor adds no more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from .costs import Costs

__all__ = ["OWN", "Taken", "edge", "together"]

TOGETHER = 4
"""The power of the mean in which units are combined: two that take the same time take 1.19 of it; with the latency
of programs, which only other programs hide, they are combined by the power of 2."""
OWN = (
    "issue", "integers and choices", "floats", "matrix units", "special functions", "double precision",
    "shared memory", "L1",
)  # fmt: skip
"""Resources of which each multiprocessor has its own."""


@dataclass(frozen=True)
class Taken:
    """What a launch takes, in any unit of time."""

    resources: Mapping[str, float]
    """By name; the latency is "latency"."""
    resident: float = inf
    """Blocks that a multiprocessor has at a time, if the latency has what the block's own warps ask of units in it."""

    @property
    def latency(self) -> float:
        """Of the chain of blocks."""
        return self.resources.get("latency", 0.0)

    def units(self) -> tuple[float, float]:
        """What units of multiprocessors take, and all others."""
        own = sum(t**TOGETHER for name, t in self.resources.items() if name in OWN)
        rest = sum(t**TOGETHER for name, t in self.resources.items() if name not in OWN and name != "latency")
        return float(own ** (1 / TOGETHER)), float(rest ** (1 / TOGETHER))

    def with_more(self, name: str, factor: float) -> Taken:
        """The same with another time of one resource."""
        return replace(self, resources={**self.resources, name: self.resources[name] * factor})


def together(taken: Taken) -> float:
    """The time of all of it, without the launch.

    >>> chain = {"latency": 10.0, "issue": 8.0}
    >>> together(Taken(chain, resident=1)), round(together(Taken(chain, resident=2)), 1)  # another block adds a part
    (10.0, 12.2)
    """
    own, rest = taken.units()
    latency = taken.latency
    units = (own**TOGETHER + rest**TOGETHER) ** (2 / TOGETHER)
    there_already = (min(own, latency) / taken.resident) ** 2
    return float(max(latency**2, units + latency**2 - there_already) ** 0.5)


def edge(taken: Taken, fixed: float, costs: Costs, side: int) -> float:
    """The least (0) or most (1) time of a launch that takes `fixed` beside.

    Each resource may be as far off as is known of it, and how well they go on beside each other is not known either: at
    best the longest hides all others, at worst little is hidden. All of it is for reasons of its own, so that what it
    does to the time is added up by squares: little where one resource takes nearly all of the time, much where several
    take about as long.
    """
    middle, unsure = together(taken), costs.uncertainty
    squares = (fixed * (unsure["launch"][side] - 1)) ** 2
    for name in taken.resources:
        factor = unsure.get(name, unsure[""])[side]
        squares += (together(taken.with_more(name, factor)) - middle) ** 2
    apart = (_at_best, _at_worst)[side](taken) - middle
    squares += (unsure["overlap"][side] * apart) ** 2
    return float(fixed + middle + (2 * side - 1) * squares**0.5)


def _at_best(taken: Taken) -> float:
    """The time where all goes on beside the longest."""
    return max(*taken.units(), taken.latency)


def _at_worst(taken: Taken) -> float:
    """The time where little does: all are combined as units and latency are."""
    own, rest = taken.units()
    there_already = (min(own, taken.latency) / taken.resident) ** 2
    return float(max(taken.latency**2, own**2 + rest**2 + taken.latency**2 - there_already) ** 0.5)
