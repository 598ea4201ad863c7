"""What operations cost on a machine, as the model of time needs it: constants with their sources, in a vendor's folder.

A rate is per multiprocessor and cycle, a latency in cycles, from the operation to the first use of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.ir.lane import LaneOp
from weft.machines import MACHINES, Machine, part

__all__ = ["Costs", "Use", "Work", "calibrated", "costs_of", "devices_of"]


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
class Work:
    """What an operation on an element becomes, in instructions of a warp."""

    slots: float
    special: float = 0.0
    """Those of them that the unit of special functions does."""
    narrow: float = 0.0
    """Those that the unit of integers, comparisons and choices does, which is half as wide as that of floats."""


@dataclass(frozen=True)
class Costs:
    """A machine that the model of time knows."""

    clock: float
    """Cycles of a nanosecond, where matrix units are not used."""
    matrix_clock: float
    """The same where they are."""
    busy_clock: float
    """The same where they are busy for most of the time."""
    busy: tuple[float, float]
    """The parts of the time for which matrix units may be busy before the clock falls, and at which it does not fall
    further."""
    launch: float
    """Nanoseconds from the start of a kernel to its blocks running."""
    profiled: float
    """Nanoseconds that a launch takes more under a profiler."""
    block_start: float
    """Nanoseconds from the start of a block to that of the next one, on the whole machine."""
    dram_read: float
    """Bytes of a nanosecond that streams reach, reading."""
    dram_write: float
    """The same, writing."""
    dram_peak: float
    """The same that the memory could reach, of which profilers say what part is used."""
    dram_turn: float
    """Nanoseconds that are lost for each byte that is written between bytes that are read."""
    dram_scattered: float
    """Bytes of a stream that take as long as one sector from anywhere."""
    dirty: tuple[float, float, float]
    """What has to be written back from the L2 cache, as others have left it: for the first bytes that are read as many,
    for more a part of them, and at most so many."""
    left: float
    """Bytes that a launch writes which are still in the L2 cache at its end, at most."""
    l2_bytes: float
    """The size of the L2 cache."""
    l2: float
    """Bytes of a cycle, of the whole machine."""
    schedulers: int
    """Warp instructions that a multiprocessor issues in a cycle."""
    line: int
    """Bytes of a cycle of a multiprocessor's L1 cache and shared memory."""
    spilled: float
    """Cycles of a multiprocessor for a word that each lane of a warp stores or loads for want of registers."""
    special: float
    """Cycles of a multiprocessor for a warp's instruction of the special functions."""
    double: float
    """The same of arithmetic on f64."""
    narrow: float
    """The same of the unit that compares, chooses, and adds integers."""
    dram_latency: float
    l2_latency: float
    shared_latency: float
    shuffle_latency: float
    special_latency: float
    alu_latency: float
    barrier_latency: float
    """Of one warp."""
    barrier_warp: float
    """What each warp adds to it."""
    product_latency: float
    """From the end of a product that is done later to the end of waiting for it."""
    atomics: tuple[float, float]
    """Lines that atomic operations reach in a nanosecond: in an array of a kibibyte, and at most."""
    bulk_atomics: float
    """Lines that the copy engine combines with memory in a nanosecond."""
    atomic_alone: tuple[float, float]
    """Nanoseconds of each lane's atomic operation where all are on one place: of integers, and of floats."""
    atomic_latency: float
    bulk_latency: float
    """From a copy of the copy engine to the arrival at its mbarrier."""
    instruction: Callable[[LaneOp, int], Use]
    """What an instruction takes, with how many of it a warp executes."""
    work: Callable[[LaneOp], Work]
    """What an operation on elements becomes, for each of them."""
    uncertainty: Mapping[str, tuple[float, float]]
    """How far what a resource takes may be below and above what is predicted, as factors; of "launch" that of what is
    the same for every kernel, of "" that of resources that are not named. Of "overlap" it is the part of the way from
    the time to where the longest hides all others, and to where little is hidden."""


def calibrated() -> list[str]:
    """The names of machines that the model of time knows."""
    return [name for name, machine in MACHINES.items() if costs_of(machine) is not None]


def costs_of(machine: Machine, device: str = "") -> Costs | None:
    """The costs of a device that runs a machine's code, the first without one; None where none is calibrated.

    >>> costs_of(MACHINES["cuda:90"], "H200").dram_read > costs_of(MACHINES["cuda:90"]).dram_read
    True
    """
    devices = _devices(machine)
    return devices[device or next(iter(devices))] if devices else None


def devices_of(machine: Machine) -> list[str]:
    """The devices that the model of time knows, which run a machine's code."""
    return list(_devices(machine))


def _devices(machine: Machine) -> Mapping[str, Costs]:
    own = part("explain", machine)
    devices: Mapping[str, Costs] = own.COSTS.get(machine.generation, {}) if own is not None else {}
    return devices
