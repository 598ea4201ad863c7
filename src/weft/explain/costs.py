"""What operations cost on a machine, as the model of time needs it: constants with their sources, in a vendor's folder.

A rate is per multiprocessor and cycle, a latency in cycles, from the operation to the first use of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.ir.lane import LaneOp
from weft.machines import MACHINES, Machine, part

__all__ = ["Costs", "Use", "calibrated", "costs_of"]


@dataclass(frozen=True)
class Use:
    """What an operation that has an instruction of its own takes, for each warp that executes it."""

    slots: float
    """Instructions that are issued."""
    pipe: str = ""
    cycles: float = 0.0
    """Of the pipe of a multiprocessor."""
    latency: float = 4.0
    when: str = "now"
    """When it is done: "now", in the order of the warp; "later", a product that others are added to before it is
    awaited; "copy", by the copy engine. "commit" ends a group of products, "arrival" waits for the copy engine."""


@dataclass(frozen=True)
class Costs:
    """A machine that the model of time knows."""

    clock: float
    """Cycles of a nanosecond, while matrix units are idle."""
    busy_clock: float
    """The same while they are never idle."""
    launch: float
    """Nanoseconds from the start of a kernel to its blocks running."""
    dram: float
    """Bytes of a nanosecond that streams reach, reading and writing."""
    l2_bytes: float
    """The size of the L2 cache."""
    l2: float
    """Bytes of a cycle, of the whole machine."""
    schedulers: int
    """Warp instructions that a multiprocessor issues in a cycle."""
    line: int
    """Bytes of a cycle of a multiprocessor's L1 cache and shared memory."""
    special: float
    """Cycles of a multiprocessor for a warp's instruction of the special functions."""
    double: float
    """The same of arithmetic on f64."""
    dram_latency: float
    l2_latency: float
    shared_latency: float
    shuffle_latency: float
    special_latency: float
    alu_latency: float
    barrier_latency: float
    atomic_latency: float
    bulk_latency: float
    """From a copy of the copy engine to the arrival at its mbarrier."""
    instruction: Callable[[LaneOp, int], Use]
    """What an instruction takes, with how many of it a warp executes."""
    uncertainty: tuple[float, float]
    """The interval around a prediction, as factors."""


def calibrated() -> list[str]:
    """The names of machines that the model of time knows."""
    return [name for name, machine in MACHINES.items() if costs_of(machine) is not None]


def costs_of(machine: Machine) -> Costs | None:
    """The costs of a machine; None for one that is not calibrated."""
    own = part("explain", machine)
    costs: Costs | None = own.COSTS.get(machine.generation) if own is not None else None
    return costs
