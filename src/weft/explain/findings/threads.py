"""Findings about threads of a CPU: too few programs, programs that are too small, memory that does not suffice."""

from __future__ import annotations

from collections.abc import Iterator

from ..record import Finding
from .rule import CPU, Facts, rule

__all__ = ["few_programs", "large_scratch", "overlapping_arrays", "small_programs"]

LONG = 100.0
"""Microseconds of a launch from which on it is worth to have all threads at it."""
OF_PROGRAMS = 0.15
"""The part of the time that starting programs may take."""
LARGER = 8
"""How many times as large programs are that start in so much less time."""
SCRATCH = 1 << 19
"""Bytes of tiles of a program that the caches of a core hold."""


@rule("few-programs", on=CPU)
def few_programs(facts: Facts) -> Iterator[Finding]:
    """Threads that have no program, in a launch that takes a while."""
    e, programs = facts.explanation, facts.explanation.counts.programs
    if e.time is None or not 0 < programs < facts.threads or e.time.microseconds < LONG:
        return
    gain = (e.time.microseconds - e.time.resources.get("launch", 0.0)) * (1 - programs / facts.threads)
    yield Finding(
        "few-programs",
        e.span,
        f"only {programs} of {facts.threads} threads have a program",
        "each program runs on one thread",
        "split the work into more programs: smaller blocks, or partial reductions that are added up afterwards",
        round(gain, 2),
    )


@rule("small-programs", on=CPU)
def small_programs(facts: Facts) -> Iterator[Finding]:
    """Programs that do so little that starting them takes a good part of the time."""
    e = facts.explanation
    took = e.time.resources.get("programs", 0.0) if e.time is not None else 0.0
    if e.time is not None and took >= OF_PROGRAMS * e.time.microseconds and e.counts.programs > 1:
        yield Finding(
            "small-programs",
            e.span,
            f"{e.counts.programs:,} programs take {took:.1f} us to start",
            f"that is {took / e.time.microseconds:.0%} of the time, because each program does little work",
            "take larger blocks, or let each program do several rows",
            round(took * (1 - 1 / LARGER), 2),
        )


@rule("large-scratch", on=CPU)
def large_scratch(facts: Facts) -> Iterator[Finding]:
    """Tiles of a program that the caches of a core do not hold."""
    buffers = [buffer.remark for buffer in facts.explanation.buffers]
    bytes = max((r.offset + r.bytes for r in buffers), default=0)
    if bytes > SCRATCH:
        largest = max(buffers, key=lambda r: r.bytes)
        yield Finding(
            "large-scratch",
            largest.span,
            f"a program keeps {bytes:,} bytes of tiles in memory",
            f"the largest has {largest.bytes:,}, and the caches of a core hold about {SCRATCH:,}",
            "take smaller blocks",
        )


@rule("overlapping-arrays", on=CPU)
def overlapping_arrays(facts: Facts) -> Iterator[Finding]:
    """Arrays that overlap, so that a variant runs which keeps what it loads in memory before it stores."""
    for first, second in facts.overlapping:
        yield Finding(
            "overlapping-arrays",
            facts.explanation.span,
            f"`{first}` and `{second}` overlap in this launch",
            "so the kernel is compiled again for arrays that overlap, and loads each tile before it stores",
            "pass arrays that do not overlap, or the same array twice",
        )
