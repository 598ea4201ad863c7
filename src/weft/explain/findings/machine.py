"""Findings about the machine: registers that do not suffice, few warps, a grid that leaves much of it idle."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from ..record import Finding
from .rule import Facts, rule

__all__ = ["half_empty_wave", "low_occupancy", "small_grid", "spills"]

LOW = 0.25
"""The part of a multiprocessor's warps below which few can hide who waits for memory."""
WASTED = 0.2
"""The part of the time of all waves that may be idle in the last one."""
MOST_WAVES = 8
MOST_WARPS = 32
LIMITS = ("registers", "shared memory")


@rule("spills")
def spills(facts: Facts) -> Iterator[Finding]:
    """Values that are kept in memory for want of registers."""
    o = facts.explanation.occupancy
    if o is not None and o.spills:
        yield Finding(
            "spills",
            facts.explanation.span,
            f"{o.spills} registers of each thread are spilled to memory",
            f"the live values of a thread do not fit in {o.registers} registers",
            f"take smaller tiles, or more warps (num_warps={2 * o.warps})",
            change={"num_warps": 2 * o.warps} if 2 * o.warps <= MOST_WARPS else {},
        )


@rule("low-occupancy")
def low_occupancy(facts: Facts) -> Iterator[Finding]:
    """Few warps on a multiprocessor, in a kernel without matrix instructions, which need few."""
    o = facts.explanation.occupancy
    if o is not None and o.part < LOW and o.limit in LIMITS and not facts.multiplies:
        yield Finding(
            "low-occupancy",
            facts.explanation.span,
            f"{o.blocks * o.warps} of {o.most_warps} warps on a multiprocessor",
            f"the {o.limit} of a block leave room for only {o.blocks} block{'s' if o.blocks != 1 else ''}",
            f"one more block takes {o.next_step}",
        )


@rule("half-empty-wave")
def half_empty_wave(facts: Facts) -> Iterator[Finding]:
    """A last wave in which much of the machine has nothing to do."""
    o = facts.explanation.occupancy
    if o is None or not 1 < o.waves < MOST_WAVES:
        return
    whole = ceil(o.waves)
    idle = (whole - o.waves) / whole
    if idle >= WASTED:
        at_a_time = o.blocks * o.multiprocessors
        yield Finding(
            "half-empty-wave",
            facts.explanation.span,
            f"{o.waves:.2f} waves take the time of {whole}",
            f"{facts.explanation.counts.programs:,} programs are run {at_a_time:,} at a time",
            f"make the number of programs a multiple of {at_a_time:,} or slightly less, or let each do several blocks",
        )


@rule("small-grid")
def small_grid(facts: Facts) -> Iterator[Finding]:
    """A grid that leaves multiprocessors without a program, although its programs have much to do."""
    o, e = facts.explanation.occupancy, facts.explanation
    if o is None or not e.counts.programs or e.counts.programs > FULL * o.multiprocessors:
        return
    if e.counts["instructions"] // e.counts.programs >= LONG:
        yield Finding(
            "small-grid",
            e.span,
            f"only {e.counts.programs} of {o.multiprocessors} multiprocessors have something to do",
            "the grid has fewer programs than the GPU has multiprocessors",
            "split the work into more programs: smaller blocks, or partial reductions that a second kernel adds up",
        )


FULL = 0.9
"""The part of the multiprocessors that have a program, from which on a grid is large enough."""
LONG = 20_000
"""Instructions of a program's warps from which on it is worth splitting."""
