"""Where a launch stands under the roofs of its machine: what it computes for each byte, and how fast.

    floating-point operations a second = the least of { the peak, operations for each byte * bytes a second }

A point under a slope waits for memory, one under the flat part for arithmetic. The roofs are the rates that the model
of time has (costs.py), so a kernel that reaches one of them is as fast as the model thinks the machine to be.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.machines import machine_of
from weft.ops.floats import FLOAT_ROWS
from weft.targets.table import instruction

from .costs import costs_of
from .record import Explanation, Time

__all__ = ["Roofline", "roofline_of"]

KIND = "kind:"
FLOATS = frozenset(row.name for row in FLOAT_ROWS)
"""Operations on floating-point numbers that lanes do; conversions between types are none."""


@dataclass(frozen=True)
class Roofline:
    """Operations are those of floating-point numbers: of matrix units if the kernel uses them, of lanes otherwise."""

    operations: float
    """Of the whole launch."""
    what: str
    """What does them: "matrix units" or "lanes"."""
    rate: float
    """Operations of a nanosecond that the launch reaches."""
    peak: float
    """Operations of a nanosecond that there are at most."""
    memories: tuple[tuple[str, float, float], ...]
    """The name of a memory, bytes that it moves, and bytes of a nanosecond that it reaches; the slowest first."""


CASTS = frozenset(f"arith.{name}" for name in ("extf", "truncf", "sitofp", "uitofp", "fptosi"))
"""Conversions, which are no operations."""
OPERATIONS = "float_operations"
"""The counter of operations on floating-point elements, of kernels for the CPU."""


def roofline_of(e: Explanation) -> Roofline | None:
    """None where no time is predicted, and for a kernel that computes nothing."""
    if e.time is not None and OPERATIONS in e.counts.total:
        return _on_cpu(e, e.time)
    machine = machine_of(e.target) if e.time is not None and e.occupancy is not None else None
    costs = costs_of(machine, e.time.device) if machine is not None and e.time is not None else None
    if e.time is None or machine is None or costs is None:
        return None
    products = _matrix_operations(e)
    matrix_time = e.time.resources.get("matrix units", 0.0)
    operations, what = products, "matrix units"
    peak = products / matrix_time / 1000 if matrix_time else 0.0
    if not products or not peak:
        operations, what = _lane_operations(e) * machine.lanes, "lanes"
        peak = machine.multiprocessors * machine.lanes * costs.schedulers * costs.clock
    if not operations:
        return None
    rates = (("DRAM", costs.dram_read), ("L2", costs.l2 * costs.clock))
    asked = {"DRAM": e.time.dram_bytes, "L2": e.time.resources.get("L2", 0.0) * costs.l2 * costs.clock * 1000}
    moved = ((name, asked[name], rate) for name, rate in rates)
    memories = tuple(each for each in moved if each[1])
    return Roofline(operations, what, operations / e.time.microseconds / 1000, peak, memories)


def _on_cpu(e: Explanation, time: Time) -> Roofline | None:
    """Its roofs are the rates that the model takes for the kernel's own bytes and operations."""
    operations = float(e.counts[OPERATIONS])
    asked = e.counts["global_load_bytes"] + e.counts["global_store_bytes"]
    moved = (("memory", time.dram_bytes), ("caches", max(0.0, asked - time.dram_bytes)))
    took = time.resources
    memories = tuple((name, bytes, bytes / took[name] / 1000) for name, bytes in moved if bytes and took.get(name))
    if not took.get("arithmetic") or not memories:
        return None
    peak = operations / took["arithmetic"] / 1000
    return Roofline(operations, "vectors", operations / time.microseconds / 1000, peak, memories)


def _matrix_operations(e: Explanation) -> float:
    """Multiplications and additions of the matrix units, over the grid."""
    total = 0.0
    for name, count in e.counts.total.items():
        if not name.startswith(KIND):
            continue
        try:
            params = instruction(name.removeprefix(KIND)).params
        except KeyError:  # an operation that every machine has
            continue
        if "multiplies" in params and "shape" in params:
            size = 2.0
            for extent in params["shape"]:
                size *= extent
            total += count * size / params.get("warps", 1)
    return total


def _lane_operations(e: Explanation) -> float:
    """Operations of registers with floating-point numbers, over the grid."""
    kinds = ((name.removeprefix(KIND), n) for name, n in e.counts.total.items() if name.startswith(KIND))
    return float(sum(n * (2 if name == "math.fma" else 1) for name, n in kinds if name in FLOATS))
